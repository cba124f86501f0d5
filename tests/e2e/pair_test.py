#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Two equal ends that call each other at the same moment (srd-e2e-pair; srd-perf has client and server)."""
import time

import harness

PAIR = harness.program("SRD_E2E_PAIR", "tests/e2e/srd-e2e-pair")


class BothInitiate(harness.FabricTest):
    def check_both_initiate(self, family):
        self.up(4, "400mbit")
        for attempt in range(10):
            port = 7000 + attempt
            ends = {host: f"[{harness.address(host, family)}]:{port}" if family == 6 else
                    f"{harness.address(host, family)}:{port}" for host in "AB"}
            start_ns = time.monotonic_ns() + 300_000_000
            pair = [self.start(here, PAIR, ends[here], ends[there], 2000, start_ns)
                    for here, there in (("A", "B"), ("B", "A"))]
            for process in pair:
                self.assertEqual(process.wait(20), 0, process.describe())
                self.assertIn("2000 sent, 2000 received", process.out)

    def test_both_ends_initiate_at_once(self):
        self.check_both_initiate(4)

    def test_both_ends_initiate_at_once_over_ipv6(self):
        self.check_both_initiate(6)


if __name__ == "__main__":
    harness.main()
