# SPDX-License-Identifier: Apache-2.0
"""The cases of perf/compare.py by name, in the order of docs/PERFORMANCE.md."""
import dataclasses
import typing

from comparison.cases import bulk, faults, local, loss


@dataclasses.dataclass
class Case:
    title: str
    runs: int  # how often, unless --runs says otherwise
    unit: str  # what --runs counts
    needs_fabric: bool
    measure: typing.Callable  # (Session, Result), fills the result


CASES = {
    "one-flow-4x1g": Case("one flow, 4 paths x 1 Gb/s", 20, "runs", True, bulk.one_flow),
    "one-flow-4x250m-segmented": Case("one flow, 4 paths x 250 Mb/s, segmented before the spines", 20, "runs", True,
                                      bulk.one_flow_segmented),
    "dead-path": Case("one path silently dead, then healed, over and over", 20, "cycles", True, faults.dead_path),
    "latency-under-failure": Case("4 KB requests, 64 B answers, open loop at 1.9 Gb/s, while paths die and heal", 20,
                                  "cycles", True, faults.latency_under_failure),
    "loss-one": Case("1 % loss of single packets on one path, 4 paths x 500 Mb/s", 9, "runs", True, loss.loss_one),
    "loss-all": Case("1 % loss of single packets on all paths, 4 paths x 500 Mb/s", 9, "runs", True, loss.loss_all),
    "slow-path": Case("one path of four at 250 Mb/s, the others at 1 Gb/s", 9, "runs", True, bulk.slow_path),
    "loopback-bulk": Case("one flow, loopback, nothing shaped", 9, "pairs", False, bulk.loopback),
    "fabric-bulk": Case("one flow through the fabric, nothing shaped, MTU 1500", 9, "pairs", True, bulk.fabric),
    "pingpong": Case("64 B round trip, loopback, busy polling", 9, "pairs", False, local.pingpong),
    "small-one-way": Case("64 B messages one way, loopback", 9, "pairs", False, local.small_one_way),
    "exchanges-50": Case("50 concurrent 64 B exchanges between two processes, loopback", 9, "pairs", False,
                         local.exchanges),
    "idle-cpu": Case("idle server", 1, "runs", False, local.idle_cpu),
}
