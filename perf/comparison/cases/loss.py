# SPDX-License-Identifier: Apache-2.0
"""Random loss of single packets: throughput beside the clean network, and latencies beside TCP's."""
from comparison.cases.bulk import PATHS, rates, series
from comparison.latency import EXCHANGE_CONNECTIONS, latency_table
from comparison.place import Fabric
from comparison.stats import median

PERMILLE = 10
REQUESTS_PER_S = 10_000
SIZES = (4096, 64)


def measure(session, result, paths, must):
    tools, seconds, omit = session.tools, session.seconds, session.omit

    def lossy(run):
        fabric.knob("loss", paths, PERMILLE)
        try:
            return run()
        finally:
            fabric.knob("loss", "all", 0)

    def srd_latency():
        options = ["--latency", "--rate", REQUESTS_PER_S, "--size", SIZES[0], "--response-size", SIZES[1]]
        return tools.srd(fabric, options, seconds)[0]["srd"]["latency_us"]

    def tcp_latency():
        options = ["--rate", REQUESTS_PER_S, "--connections", EXCHANGE_CONNECTIONS]
        return tools.exchange(fabric, seconds, *options, sizes=SIZES)[0]["latency_us"]

    def bulk():
        return tools.srd_bulk(fabric, seconds, omit)

    with Fabric(PATHS, "500mbit", segmented=True) as fabric:
        runs = session.interleave({"OpenSRD, clean": (bulk, session.runs),
                                   "OpenSRD, 1 % lost": (lambda: lossy(bulk), session.runs),
                                   "kernel TCP, 1 % lost": (
                                       lambda: lossy(lambda: tools.tcp_bulk(fabric, seconds, omit)), session.runs)})
        latencies = session.interleave({"OpenSRD, clean": (srd_latency, session.runs),
                                        "OpenSRD, 1 % lost": (lambda: lossy(srd_latency), session.runs),
                                        "kernel TCP, clean": (tcp_latency, session.runs),
                                        "kernel TCP, 1 % lost": (lambda: lossy(tcp_latency), session.runs)})
    result.series += [series(name, found) for name, found in runs.items()]
    clean, lost = rates(runs["OpenSRD, clean"]), rates(runs["OpenSRD, 1 % lost"])
    result.check("share of the clean rate, median of pairs",
                 100 * median([b / a for a, b in zip(clean, lost)]), ">=", must, "%")
    result.tables.append(latency_table(f"open loop, {REQUESTS_PER_S} requests of {SIZES[0]} B per second, "
                                       f"answers of {SIZES[1]} B; ms", latencies))
    result.notes.append(f"Kernel TCP answers over {EXCHANGE_CONNECTIONS} connections (tcp_exchange), one flow of bulk "
                        "data is one connection (iperf3).")


def loss_one(session, result):
    measure(session, result, 0, 95)


def loss_all(session, result):
    measure(session, result, "all", 90)
