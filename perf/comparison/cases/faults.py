# SPDX-License-Identifier: Apache-2.0
"""A path dies silently and is healed, over and over: how soon the flow has its rate back, and what requests see."""
import contextlib
import dataclasses
import os
import subprocess
import time

from comparison.cases.bulk import PATHS
from comparison.latency import EXCHANGE_CONNECTIONS, latency_table
from comparison.place import Fabric, SentBytes
from comparison.process import Process
from comparison.result import Failure, Table
from comparison.stats import ReceiverLog, median, percentile
from comparison.tools import PATIENCE_S, parse

NS_PER_S = 1_000_000_000
WARM_UP_S = 2.5
DEAD_S = 1.0
HEALTHY_S = 1.5
SETTLED_S = 0.4  # after the fault: from here on the rate is that of three paths
PATH_BYTES_PER_S = 1e9 / 8
IN_USE = 0.25  # a path that carries this share of its rate
MESSAGE_BYTES = 16 << 10  # small beside what arrives in a bin of 1 ms (350 KB)
SIZES = (4096, 64)
REQUESTS_PER_S = round(1.9e9 / 8 / SIZES[0])
DRAIN_S = 120
# What `fabric fail` does, as nft takes it.
HOLE = "table inet hole { chain f { type filter hook forward priority 0; counter drop\n}\n}\n"


@dataclasses.dataclass
class Fault:
    """Times are of CLOCK_MONOTONIC, as in the receiver's log."""
    path: int
    in_use: bool  # the path carried data just before
    begin_ns: int  # when the fault was ordered
    last_datagram_ns: int  # the last one over this path left its spine
    uncertainty_ns: int  # by so much it may have been later
    healed_ns: int


class ArmedFault:
    """A black hole whose nft has started and waits for its text, so that the fault itself costs little time."""

    def __init__(self, fabric, path):
        # Not a Process: it is written to.
        self._nft = subprocess.Popen(fabric.command(f"spine{path}", ["nft", "-f", "-"]), stdin=subprocess.PIPE,
                                     stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

    def fire(self):
        self._nft.stdin.write(HOLE)
        self._nft.stdin.close()

    def is_done(self):
        code = self._nft.poll()
        if code not in (None, 0):
            raise Failure(f"nft could not make the black hole: {self._nft.stderr.read()}")
        return code is not None

    def close(self):
        self._nft.kill()
        self._nft.wait()
        self._nft.stderr.close()
        with contextlib.suppress(BrokenPipeError):
            self._nft.stdin.close()


def sleep_until(monotonic_ns):
    time.sleep(max(monotonic_ns - time.monotonic_ns(), 0) / NS_PER_S)


@contextlib.contextmanager
def before_all_others():
    """Real-time priority, where it is allowed: on a busy machine this process would sleep too long."""
    try:
        os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1))
    except PermissionError:
        yield  # what that costs is seen in Fault.uncertainty_ns
        return
    try:
        yield
    finally:
        os.sched_setscheduler(0, os.SCHED_OTHER, os.sched_param(0))


def watch_last_datagram(sent, armed):
    """Fires the fault and returns (time of the last datagram that `sent` saw, how much later it may have been)."""
    last, seen_ns = sent.read(), time.monotonic_ns()
    earliest_ns = latest_ns = seen_ns
    armed.fire()
    done_ns = None
    while done_ns is None or seen_ns < done_ns + 5_000_000:
        time.sleep(0.0002)
        before_ns, count, seen_ns = seen_ns, sent.read(), time.monotonic_ns()
        if count != last:
            last, earliest_ns, latest_ns = count, before_ns, seen_ns
        if done_ns is None and armed.is_done():
            done_ns = seen_ns
    return earliest_ns, latest_ns - earliest_ns


def run_cycles(session, fabric, cycles, client):
    """Kills and heals one path after the other, on a fixed schedule, while `client` runs; returns the faults."""
    faults = []
    start_ns = time.monotonic_ns() + round(WARM_UP_S * NS_PER_S)
    with contextlib.ExitStack() as stack:
        def sent_by(machine, device):
            return stack.enter_context(contextlib.closing(SentBytes(fabric, machine, device)))
        spines = [sent_by(f"spine{path}", "toB") for path in range(PATHS)]
        uplinks = [sent_by("leafA", f"up{path}") for path in range(PATHS)]
        for cycle in range(cycles):
            path = cycle % PATHS
            begin_ns = start_ns + round(cycle * (DEAD_S + HEALTHY_S) * NS_PER_S)
            sleep_until(begin_ns - NS_PER_S // 2)
            with contextlib.closing(ArmedFault(fabric, path)) as armed:
                sleep_until(begin_ns - NS_PER_S // 5)
                before = uplinks[path].read()
                sleep_until(begin_ns - NS_PER_S // 10)
                carried = uplinks[path].read() - before
                sleep_until(begin_ns)
                with before_all_others():
                    last_ns, uncertainty_ns = watch_last_datagram(spines[path], armed)
            sleep_until(begin_ns + round(DEAD_S * NS_PER_S))
            healed_ns = time.monotonic_ns()
            fabric.knob("heal", path)
            faults.append(Fault(path, carried > IN_USE * PATH_BYTES_PER_S / 10, begin_ns, last_ns, uncertainty_ns,
                                healed_ns))
            if not client.is_running():
                raise Failure(f"it ended while paths died: {client.describe()}")
            session.progress(f"path {path} died and was healed, cycle {cycle + 1} of {cycles}")
    return faults


def cycles_s(cycles):
    """How long a run with so many faults lasts."""
    return WARM_UP_S + cycles * (DEAD_S + HEALTHY_S)


def cycles_of(session):
    return 2 if session.quick else session.runs


def flow_through_faults(session, fabric, *options):
    """Runs one flow through all cycles; returns (faults, its report)."""
    cycles = cycles_of(session)
    options = ["-t", cycles_s(cycles), "-l", MESSAGE_BYTES, "--bins-ms", 1, *options]
    with session.tools.srd_pair(fabric, options) as pair:
        pair.start()
        faults = run_cycles(session, fabric, cycles, pair.client)
        report = parse(pair.finish(PATIENCE_S), "srd-perf")
    return faults, report


@dataclasses.dataclass
class Recoveries:
    """The statistic in ms: after each fault, and at instants without a fault before and after it."""
    three_path_rate: float  # bytes per bin
    faults: list
    healthy: list
    settled: list


def recoveries(faults, report):
    bins = report["srd"]["remote"]["bins"]
    log = ReceiverLog(bins["bin_ms"], bins["start_monotonic_ns"], bins["bytes"])
    settled_ns = round(SETTLED_S * NS_PER_S)
    rate = median([log.rate(fault.begin_ns + settled_ns, fault.healed_ns) for fault in faults])

    def at(instants):
        return [log.recovery_ms(instant, rate, until) for instant, until in instants]
    return Recoveries(
        rate,
        at([(fault.last_datagram_ns, fault.healed_ns) for fault in faults]),
        at([(fault.begin_ns - round(0.6 * NS_PER_S), fault.begin_ns) for fault in faults]),
        at([(fault.begin_ns + settled_ns, fault.healed_ns) for fault in faults]))


def recovery_row(name, values):
    return [name, len(values), *(round(value, 2) for value in (
        median(values), min(values), percentile(values, 10), percentile(values, 90), max(values)))]


def dead_path(session, result):
    with Fabric(PATHS, "1gbit") as fabric:
        faults, report = flow_through_faults(session, fabric)
        session.progress("once more, with every byte checked")
        checked_faults, checked_report = flow_through_faults(session, fabric, "--verify")
    found, checked = recoveries(faults, report), recoveries(checked_faults, checked_report)
    result.setup = (f"a path is dead for {DEAD_S} s, then healed for {HEALTHY_S} s, one after the other; messages of "
                    f"{MESSAGE_BYTES} B. Recovery: from the last datagram over the path to the first 20 ms in which "
                    "the receiver gets 95 % of the rate over three paths")
    result.tables.append(Table(
        ["recovery, ms", "n", "median", "min", "p10", "p90", "max"],
        [recovery_row("a path dies", found.faults),
         recovery_row("no fault, four paths", found.healthy),
         recovery_row("no fault, three paths", found.settled),
         recovery_row("a path dies, every byte checked", checked.faults)]))
    result.check("median after a fault", median(found.faults), "<=", 5, "ms")
    result.check("p90 after a fault", percentile(found.faults, 90), "<=", 25, "ms")
    sent, received = report["srd"]["messages_sent"], report["srd"]["remote"]["messages_received"]
    result.check("messages delivered minus messages sent", received - sent, "=", 0)
    verified = checked_report["srd"]["remote"]["messages_verified"]
    result.check("checked byte by byte and for duplicates, minus messages sent",
                 verified - checked_report["srd"]["messages_sent"], "=", 0)
    result.check("faults that hit a path in use", sum(fault.in_use for fault in faults), "=", len(faults))
    result.notes.append(f"Rate over three paths: {found.three_path_rate * 8 / 1e6:.2f} Gb/s. The time of the last "
                        "datagram is known to "
                        f"{median([fault.uncertainty_ns for fault in faults]) / 1e6:.2f} ms (median); the earlier "
                        "time counts.")


def latency_under_failure(session, result):
    cycles = cycles_of(session)
    seconds = cycles_s(cycles)
    tools = session.tools
    srd_options = ["-t", seconds, "--latency", "--rate", REQUESTS_PER_S, "--size", SIZES[0],
                   "--response-size", SIZES[1]]
    tcp_options = ["--rate", REQUESTS_PER_S, "--connections", EXCHANGE_CONNECTIONS]
    with Fabric(PATHS, "1gbit") as fabric:
        def measure(pair, what, with_faults):
            with pair:
                pair.start()
                if with_faults:
                    faults = run_cycles(session, fabric, cycles, pair.client)
                    hits.append(sum(fault.in_use for fault in faults))
                # What cannot keep up has a backlog of requests at the end, which still count.
                latency = parse(pair.finish((0 if with_faults else seconds) + DRAIN_S), what)
            return latency["srd"]["latency_us"] if "srd" in latency else latency["latency_us"]

        def srd(with_faults):
            return lambda: measure(tools.srd_pair(fabric, srd_options), "srd-perf", with_faults)

        def tcp(with_faults):
            return lambda: measure(tools.exchange_pair(fabric, seconds, *tcp_options, sizes=SIZES), "tcp_exchange",
                                   with_faults)
        hits = []
        latencies = session.interleave({
            "OpenSRD, paths die": (srd(True), 1), "OpenSRD, no fault": (srd(False), 1),
            "kernel TCP, paths die": (tcp(True), 1), "kernel TCP, no fault": (tcp(False), 1)})
    result.setup = (f"{REQUESTS_PER_S} requests per second of {SIZES[0]} B for {seconds:g} s; "
                    f"kernel TCP over {EXCHANGE_CONNECTIONS} connections")
    result.tables.append(latency_table("ms", latencies))
    result.check("p99.9 of OpenSRD while paths die", latencies["OpenSRD, paths die"][0]["p99.9"] / 1e3, "<=", 20, "ms")
    result.notes.append(f"Faults that hit a path in use: {hits[0]} of {cycles} with OpenSRD, {hits[1]} with TCP.")
