#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The statistics and reports of perf/compare.py, on made-up figures."""
import json
import unittest

from comparison import report
from comparison.result import Result, Series, Table, from_json
from comparison.stats import ReceiverLog, percentile, spread

MS = 1_000_000
START_NS = 7_000_000_123  # of CLOCK_MONOTONIC: bins do not begin at whole milliseconds


def log(*pieces):
    """A log of 1 ms bins from (number of bins, bytes in each)."""
    return ReceiverLog(1, START_NS, [received for count, received in pieces for _ in range(count)])


class Spread(unittest.TestCase):
    def test_percentiles_are_values_that_occurred(self):
        self.assertEqual(percentile(range(1, 21), 90), 18)
        self.assertEqual(percentile(range(1, 21), 10), 2)
        self.assertEqual(percentile([5], 90), 5)

    def test_order_does_not_matter(self):
        self.assertEqual(spread([3, 1, 2]), {"n": 3, "median": 2, "min": 1, "p10": 1, "p90": 3, "max": 3})


class Recovery(unittest.TestCase):
    def recovery(self, made, instant_ms, until_ms=200, full_rate=300):
        return made.recovery_ms(START_NS + round(instant_ms * MS), full_rate, START_NS + until_ms * MS)

    def test_a_gap_counts_to_its_end(self):
        made = log((100, 400), (7, 0), (193, 300))
        self.assertAlmostEqual(self.recovery(made, 100), 6)  # 20 bins with one empty one still carry 95 %

    def test_without_a_gap_it_is_the_rest_of_the_bin(self):
        made = log((300, 300))
        self.assertAlmostEqual(self.recovery(made, 100), 0)
        self.assertAlmostEqual(self.recovery(made, 100.25), 0.75)

    def test_the_threshold_is_95_percent_of_20_bins(self):
        just, below = log((300, 285)), log((300, 284))
        self.assertAlmostEqual(self.recovery(just, 100), 0)
        self.assertAlmostEqual(self.recovery(below, 100), 100)  # not before the end: a lower bound

    def test_a_burst_of_what_was_held_up_does_not_hide_the_gap_before_it(self):
        made = log((100, 300), (40, 0), (1, 6000), (159, 300))
        self.assertAlmostEqual(self.recovery(made, 100), 21)  # the first window that the burst is in

    def test_a_window_must_end_before_the_path_is_healed(self):
        made = log((100, 300), (85, 0), (115, 300))
        self.assertAlmostEqual(self.recovery(made, 100, until_ms=200), 100)

    def test_what_the_log_does_not_hold_is_an_error(self):
        with self.assertRaises(ValueError):
            self.recovery(log((150, 300)), 100)
        with self.assertRaises(ValueError):
            log((150, 300)).rate(START_NS, START_NS + 151 * MS)

    def test_rate_is_the_mean_of_whole_bins(self):
        self.assertEqual(log((10, 100), (10, 200)).rate(START_NS + 5 * MS, START_NS + 15 * MS), 150)


class Reports(unittest.TestCase):
    def setUp(self):
        self.result = Result("some-case", "what it is", series=[Series("OpenSRD", "Gb/s", [3.0, 3.5, 4.0], [0.5] * 3)],
                             tables=[Table(["ms", "p50"], [["OpenSRD", 0.061]])], notes=["A note."])
        self.result.check("median", 3.5, ">=", 3.6, "Gb/s")
        self.result.check("lost", 0, "=", 0)

    def test_survives_json(self):
        again = from_json(json.loads(json.dumps(self.result.to_json())))
        self.assertEqual(again, self.result)

    def test_says_what_was_measured_and_what_must_be_reached(self):
        text = report.human(self.result)
        self.assertIn("median: MEASURED 3.50 Gb/s vs MUST >= 3.60 Gb/s: FAIL", text)
        self.assertIn("lost: MEASURED 0 vs MUST = 0: pass", text)

    def test_markdown_names_command_machine_date_and_commit(self):
        machine = {"cpu": "Some CPU", "cores": 2, "kernel": "Linux 6.1", "virtual": True, "date": "2026-01-02",
                   "commit": "abc123"}
        text = report.markdown([self.result], machine, "perf/compare.py some-case", quick=False)
        for words in ("2026-01-02", "`perf/compare.py some-case`", "Some CPU, 2 cores, virtual machine, Linux 6.1",
                      "commit abc123", "| OpenSRD, Gb/s | 3 | 3.50 | 3 | 3 | 4 | 4 | 0.500 |", "**fail**", "- A note."):
            self.assertIn(words, text)
        self.assertIn("figures mean nothing", report.markdown([self.result], machine, "command", quick=True))


if __name__ == "__main__":
    unittest.main()
