# SPDX-License-Identifier: Apache-2.0
"""Small messages over loopback, and a server that has nothing to do."""
import pathlib
import time

from comparison.place import Loopback
from comparison.result import Series, Table
from comparison.stats import median
from comparison.tools import PATIENCE_S

EXCHANGES = 50
MESSAGE_BYTES = 64
IDLE_PERCENT_MAX = 0.05  # what rounds to 0.0 %


def pingpong(session, result):
    place = Loopback()

    def srd():
        options = ["--latency", "--busy-poll", "--size", MESSAGE_BYTES, "--response-size", MESSAGE_BYTES]
        report, _ = session.tools.srd(place, options, session.seconds, server_options=["--busy-poll"])
        return report["srd"]["latency_us"]["p50"]

    runs = session.interleave({"OpenSRD": (srd, session.runs),
                               "sockperf": (lambda: session.tools.sockperf(place, session.seconds), session.runs)})
    result.series += [Series(name, "us", values) for name, values in runs.items()]
    ratios = [ours / theirs for ours, theirs in zip(runs["OpenSRD"], runs["sockperf"])]
    result.check("to sockperf's median round trip, median of pairs", median(ratios), "<=", 1.25, "x")
    result.notes.append("Each figure is the median round trip of one run.")


def datagrams_per_message(report, messages):
    """(all datagrams of both ends, those that only acknowledge) per message or exchange of the whole run."""
    ends = report["srd"], report["srd"]["remote"]
    sent = sum(end["counters"]["tx_datagrams"] for end in ends)
    return sent / messages, sum(end["counters"]["tx_acks"] for end in ends) / messages


def small_one_way(session, result):
    place, tools = Loopback(), session.tools
    size = ["-l", MESSAGE_BYTES]
    runs = session.interleave({
        "OpenSRD": (lambda: tools.srd_bulk(place, session.seconds, session.omit, *size), session.runs),
        "kernel TCP": (lambda: tools.tcp_bulk(place, session.seconds, session.omit, "-N", *size), session.runs)})
    rates = {name: [run.bits_per_s / 8 / MESSAGE_BYTES for run in found] for name, found in runs.items()}
    per_message = [datagrams_per_message(run.report, run.report["srd"]["messages_sent"]) for run in runs["OpenSRD"]]
    add_rates(result, rates, per_message, "messages/s")
    result.notes.append(f"Kernel TCP: iperf3 with writes of {MESSAGE_BYTES} B and TCP_NODELAY; a stream, without bounds "
                        "of messages.")


def exchanges(session, result):
    place, tools = Loopback(), session.tools

    def srd():
        options = ["--latency", "--depth", EXCHANGES, "--size", MESSAGE_BYTES, "--response-size", MESSAGE_BYTES]
        return tools.srd(place, options, session.seconds)

    runs = session.interleave({
        "OpenSRD": (srd, session.runs),
        "kernel TCP": (lambda: tools.exchange(place, session.seconds, "--connections", EXCHANGES), session.runs)})
    rates = {"OpenSRD": [report["end"]["sum_received"]["bits_per_second"] / 8 / MESSAGE_BYTES
                         for report, _ in runs["OpenSRD"]],
             "kernel TCP": [report["exchanges_per_s"] for report, _ in runs["kernel TCP"]]}
    per_exchange = [datagrams_per_message(report, report["srd"]["messages_sent"]) for report, _ in runs["OpenSRD"]]
    add_rates(result, rates, per_exchange, "exchanges/s")
    ratios = [ours / theirs for ours, theirs in zip(rates["OpenSRD"], rates["kernel TCP"])]
    result.check("to TCP's exchanges, median of pairs", median(ratios), ">=", 1.2, "x")
    for name, found in runs.items():
        per_million = [cpu_s / (rate * session.seconds) * 1e6 for (_, cpu_s), rate in zip(found, rates[name])]
        result.notes.append(f"CPU seconds per million exchanges, both ends: {name} {median(per_million):.2f}.")


def add_rates(result, rates, per_message, unit):
    result.series += [Series(name, unit, values) for name, values in rates.items()]
    rate = median(rates["OpenSRD"])
    datagrams, acks = (median(values) for values in zip(*per_message))
    result.tables.append(Table(["OpenSRD, both ends together (medians)", "per second", "per message or exchange"],
                               [["datagrams", round(datagrams * rate), round(datagrams, 4)],
                                ["of them only acknowledgements", round(acks * rate), round(acks, 4)]]))


def run_time_ns(pid):
    """Time on a processor of all threads of a process."""
    return sum(int(path.read_text(encoding="ascii").split()[0])
               for path in pathlib.Path(f"/proc/{pid}/task").glob("*/schedstat"))


def idle_cpu(session, result):
    place, tools = Loopback(), session.tools
    with tools.srd_server(place) as server:
        tools.srd_client(place, ["-t", 1], PATIENCE_S)  # it has a peer to be idle with
        time.sleep(1)
        before, start = run_time_ns(server.pid), time.monotonic_ns()
        time.sleep(2 if session.quick else 30)
        percent = 100 * (run_time_ns(server.pid) - before) / (time.monotonic_ns() - start)
    result.series.append(Series("OpenSRD server after one client", "% of a core", [percent]))
    result.check("processor time of an idle server", percent, "<=", IDLE_PERCENT_MAX, "%")
