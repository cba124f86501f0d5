# SPDX-License-Identifier: Apache-2.0
"""Latencies of requests and answers as a table."""
from comparison.result import Table
from comparison.stats import median

# Kernel TCP needs several connections to use several paths at all, and then meets each fault on some.
EXCHANGE_CONNECTIONS = 16
COLUMNS = ("p50", "p99", "p99.9", "p99.99", "max")


def latency_table(what, latencies):
    """A row per name of {name: [latency_us of a run, ...]}: medians of the runs, the largest max of all."""
    rows = []
    for name, runs in latencies.items():
        figures = {column: median([run[column] for run in runs]) / 1e3 for column in COLUMNS}
        figures["max"] = max(run["max"] for run in runs) / 1e3
        rows.append([name, *(round(figures[column], 3) for column in COLUMNS),
                     sum(run["unanswered"] for run in runs)])
    return Table([what, *COLUMNS, "unanswered"], rows)
