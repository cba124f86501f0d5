# SPDX-License-Identifier: Apache-2.0
"""Bulk data: one flow over several paths, over loopback, through the unshaped fabric, beside a slow path."""
from comparison.place import MPTCP_SUBFLOWS, Fabric, Loopback
from comparison.result import Series
from comparison.stats import median

PATHS = 4
# What TCP can carry at best: 1448 bytes in each frame of 1514 that the rate limit counts.
PAYLOAD_SHARE = 1448 / 1514
TCP_PROCESSES = (4, 8, 16)
SIDE_RUNS = 5  # of what stands beside without a bound of its own
MPTCP_RUNS = 11


def rates(runs):
    return [run.bits_per_s / 1e9 for run in runs]


def series(name, runs):
    return Series(name, "Gb/s", rates(runs), [run.cpu_s_per_gb for run in runs])


def pair_ratio(srd, tcp):
    """Median of the ratios of neighbouring runs."""
    return median([ours / theirs for ours, theirs in zip(rates(srd), rates(tcp))])


def add_cpu_note(result, srd, tcp):
    ours, theirs = (median([run.cpu_s_per_gb for run in runs]) for runs in (srd, tcp))
    result.notes.append(f"CPU seconds per GB, both ends: OpenSRD {ours:.3f}, kernel TCP {theirs:.3f} "
                        f"({ours / theirs:.2f} x).")


def one_flow(session, result):
    tools, seconds, omit = session.tools, session.seconds, session.omit
    with Fabric(PATHS, "1gbit") as fabric:
        plans = {"OpenSRD": (lambda: tools.srd_bulk(fabric, seconds, omit), session.runs),
                 "kernel TCP": (lambda: tools.tcp_bulk(fabric, seconds, omit), session.runs)}
        why_not = tools.why_no_mptcp()
        mptcp = f"MPTCP, {MPTCP_SUBFLOWS} subflows"
        if why_not is None:
            fabric.allow_mptcp()
            plans[mptcp] = (lambda: tools.mptcp_bulk(fabric, seconds, omit), MPTCP_RUNS)
        else:
            result.notes.append(f"MPTCP is left out: {why_not}.")
        for count in TCP_PROCESSES:
            plans[f"{count} TCP processes"] = (
                lambda count=count: tools.tcp_processes(fabric, seconds, omit, count), SIDE_RUNS)
        runs = session.interleave(plans)
    result.series += [series(name, found) for name, found in runs.items()]
    srd, tcp = runs["OpenSRD"], runs["kernel TCP"]
    result.check("median of one OpenSRD flow", median(rates(srd)), ">=", 3.6, "Gb/s")
    result.check("slowest run of one OpenSRD flow", min(rates(srd)), ">=", 3.4, "Gb/s")
    result.check("to kernel TCP's one flow, median of pairs", pair_ratio(srd, tcp), ">=", 3.8, "x")
    if why_not is None:
        result.check("to MPTCP, ratio of medians", median(rates(srd)) / median(rates(runs[mptcp])), ">=", 1.5, "x")
    best = max((median(rates(runs[f"{count} TCP processes"])), count) for count in TCP_PROCESSES)
    result.notes.append(f"Best of {', '.join(map(str, TCP_PROCESSES))} TCP processes: {best[0]:.2f} Gb/s "
                        f"with {best[1]} (median).")
    add_cpu_note(result, srd, tcp)


def one_flow_segmented(session, result):
    tools, seconds, omit = session.tools, session.seconds, session.omit
    with Fabric(PATHS, "250mbit", segmented=True) as fabric:
        runs = session.interleave({"OpenSRD": (lambda: tools.srd_bulk(fabric, seconds, omit), session.runs),
                                   "kernel TCP": (lambda: tools.tcp_bulk(fabric, seconds, omit), SIDE_RUNS)})
    result.series += [series(name, found) for name, found in runs.items()]
    limit = PATHS * 0.25 * PAYLOAD_SHARE
    result.check(f"share of the payload limit ({limit:.3f} Gb/s), median",
                 100 * median(rates(runs["OpenSRD"])) / limit, ">=", 93, "%")
    add_cpu_note(result, runs["OpenSRD"], runs["kernel TCP"])


def slow_path(session, result):
    tools, seconds, omit = session.tools, session.seconds, session.omit
    turn = 0

    def one_slow():
        nonlocal turn
        fabric.knob("rate", "all", "1gbit")
        fabric.knob("rate", turn % PATHS, "250mbit")
        turn += 1
        return tools.srd_bulk(fabric, seconds, omit)

    with Fabric(PATHS, "1gbit") as fabric:
        runs = session.interleave({"OpenSRD": (one_slow, session.runs)})["OpenSRD"]
    result.series.append(series("OpenSRD", runs))
    result.check("share of the 3.25 Gb/s left, median", 100 * median(rates(runs)) / 3.25, ">=", 90, "%")


def beside_tcp(session, result, place, must):
    tools, seconds, omit = session.tools, session.seconds, session.omit
    runs = session.interleave({"OpenSRD": (lambda: tools.srd_bulk(place, seconds, omit), session.runs),
                               "kernel TCP": (lambda: tools.tcp_bulk(place, seconds, omit), session.runs)})
    result.series += [series(name, found) for name, found in runs.items()]
    result.check("to iperf3 TCP, median of pairs", pair_ratio(runs["OpenSRD"], runs["kernel TCP"]), ">=", must, "x")
    add_cpu_note(result, runs["OpenSRD"], runs["kernel TCP"])


def loopback(session, result):
    beside_tcp(session, result, Loopback(), 1.3)


def fabric(session, result):
    with Fabric(PATHS, "none") as place:
        beside_tcp(session, result, place, 1.2)
