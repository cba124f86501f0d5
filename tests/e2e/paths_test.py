#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One flow over four paths of a fabric, and what happens to it when paths die, lose, slow down or mark."""
import time

import harness
from harness import fabric
from perf_tool import PerfTest, marked_datagrams, received_rate, sum_of, traffic

PATH_RATE = "200mbit"  # four of them leave room on a small machine, so that paths are what limits
PATH_BYTES_PER_S = 200e6 / 8
FILLED = 0.9  # of the paths' rate; a flow that carries less lacked the CPU time, and need not be even


class AllPaths(PerfTest):
    def check_even(self, direction, *options, family=4):
        """One flow of 5 s. It says nothing if it did not fill the paths because this machine was too busy: only
        then another one is tried."""
        self.up(4, PATH_RATE)
        self.server()
        unfilled = []
        for _ in range(3):
            client = self.client("-t", 8, *options, target=harness.address("B", family))
            self.flowing(direction)
            time.sleep(1)
            shares = traffic(direction, 5)
            self.finish(client)
            if sum(shares) > 5 * FILLED * 4 * PATH_BYTES_PER_S:
                self.assertLess(max(shares) - min(shares), 0.10 * max(shares), f"bytes per path: {shares}")
                return
            unfilled.append(shares)
        self.fail(f"three flows did not fill the paths, bytes per path: {unfilled}")

    def test_all_paths_carry_the_same(self):
        self.check_even("ab")

    def test_all_paths_carry_the_same_when_the_server_sends(self):
        self.check_even("ba", "-R")

    def test_all_paths_carry_the_same_over_ipv6(self):
        self.check_even("ab", family=6)


class DeadPath(PerfTest):
    def check_each_path_dead(self, failed, direction="ab", *options):
        """Kills each path in turn in direction `failed` while data goes in `direction`."""
        self.up(4, PATH_RATE)
        self.server()
        client = self.client("-t", 100, *options)
        self.flowing(direction)
        time.sleep(1)
        healthy = sum(traffic(direction, 1))
        data_dies = failed in ("both", direction)
        for path in range(4):
            fabric("fail", path, failed)
            time.sleep(1)
            shares = traffic(direction, 1)
            with self.subTest(path=path, failed=failed, shares=shares):
                alive = sum(shares) - (shares[path] if data_dies else 0)
                self.assertGreater(alive, 0.4 * healthy)
                if data_dies:  # only probes go there
                    self.assertLess(shares[path], 0.05 * sum(shares))
            self.assertGreater(harness.stat()[path]["holed"], 0, "the dead path did swallow packets")
            fabric("heal", path)
            self.wait_for_share(direction, path, 0.25 * healthy / 4)
        self.interrupt(client)

    def wait_for_share(self, direction, path, bytes_per_s):
        harness.wait_until(lambda: traffic(direction, 0.2)[path] > 0.2 * bytes_per_s, f"path {path} is used again", 15)

    def test_each_path_dead_both_ways(self):
        self.check_each_path_dead("both")

    def test_each_path_dead_for_the_data(self):
        self.check_each_path_dead("ab")

    def test_each_path_dead_for_the_acknowledgements(self):
        self.check_each_path_dead("ba")

    def test_each_path_dead_both_ways_when_the_server_sends(self):
        self.check_each_path_dead("both", "ba", "-R")

    def test_each_path_dead_for_the_data_when_the_server_sends(self):
        self.check_each_path_dead("ba", "ba", "-R")

    def test_three_of_four_paths_dead(self):
        self.up(4, PATH_RATE)
        self.server()
        client = self.client("-t", 6)
        self.flowing()
        for path in 0, 1, 3:
            fabric("fail", path)
        time.sleep(1.5)
        shares = traffic("ab", 1)
        self.finish(client)
        self.assertGreater(shares[2], 0.4 * PATH_BYTES_PER_S, shares)
        self.assertLess(sum(shares) - shares[2], 0.2 * shares[2], shares)

    def test_dead_before_the_first_packet(self):
        self.up(4, PATH_RATE)
        fabric("fail", 0)
        fabric("fail", 2, "ba")
        self.server()
        for _ in range(8):  # fresh ports each time: often the first one leads over a dead path
            self.finish(self.client("-n", "20M"))

    def test_requests_go_on_while_a_path_dies(self):
        self.up(4, PATH_RATE)
        self.server()
        client = self.client("-t", 8, "--latency", "--rate", 2000, "--size", 4096)
        self.flowing()
        time.sleep(1)
        for path in 1, 2:
            fabric("fail", path)
            time.sleep(1)
            fabric("heal", path)
            time.sleep(0.5)
        self.assertEqual(client.wait(40), 0, client.describe())
        latency = client.json()["srd"]["latency_us"]
        self.assertEqual(latency["unanswered"], 0, client.describe())
        self.assertGreater(latency["count"], 8 * 2000 * 0.9)
        self.assertLess(latency["max"], 2e6, "no request waited for a path to come back")

    def test_healed_path_is_used_again(self):
        self.up(4, PATH_RATE)
        self.server()
        client = self.client("-t", 60)
        self.flowing()
        time.sleep(1)
        healthy = sum(traffic("ab", 1))
        fabric("fail", 2)
        time.sleep(3)
        self.assertLess(traffic("ab", 1)[2], 0.05 * healthy / 4)
        fabric("heal", 2)
        self.wait_for_share("ab", 2, 0.6 * healthy / 4)
        self.interrupt(client)


class Impaired(PerfTest):
    """Ratios to the clean run of the same test; perf/ measures the exact numbers."""

    def rate(self, *options):
        report = self.finish(self.client("-t", 4, "-O", 1, *options))
        return received_rate(report), report

    def fabric_with_server(self):
        self.up(4, "250mbit")
        fabric("segment", "on")
        self.server()

    def test_loss_on_one_path(self):
        self.fabric_with_server()
        clean, _ = self.rate()
        fabric("loss", 1, 10)
        lossy, report = self.rate()
        self.assertGreater(harness.stat()[1]["lost"], 0)
        self.assertGreater(sum_of(report, "retransmitted"), 0)
        self.assertGreater(lossy, 0.6 * clean)

    def test_loss_on_all_paths(self):
        self.fabric_with_server()
        clean, _ = self.rate()
        fabric("loss", "all", 10)
        lossy, report = self.rate()
        self.assertGreater(min(row["lost"] for row in harness.stat()), 0)
        self.assertGreater(sum_of(report, "retransmitted"), 0)
        self.assertGreater(lossy, 0.5 * clean)

    def test_heavy_loss_both_ways_delivers_every_byte(self):
        self.fabric_with_server()
        fabric("loss", "all", 100)
        self.finish(self.client("-n", "20M", "--bidir"), 60)

    def test_one_path_at_a_quarter_of_the_rate(self):
        self.up(4, PATH_RATE)
        self.server()
        clean, _ = self.rate()
        fabric("rate", 3, "50mbit")
        slow, _ = self.rate()
        # 3.25 of 4 are left; equal shares for all paths would leave 1 of 4.
        self.assertGreater(slow, 0.6 * clean)

    def test_congestion_marks(self):
        for family in 4, 6:
            with self.subTest(family=family):
                self.up(4, "250mbit")
                self.server()
                target = harness.address("B", family)
                clean = received_rate(self.finish(self.client("-t", 3, target=target)))
                fabric("ce", "all", 50)
                report = self.finish(self.client("-t", 3, target=target))
                self.assertGreater(min(row["ce"] for row in harness.stat()), 0)
                self.assertGreater(marked_datagrams(report), 0)
                self.assertGreater(received_rate(report), 0.3 * clean)
            self.doCleanups()

    def test_every_packet_marked(self):
        self.up(4, "250mbit")
        self.server()
        fabric("ce", "all", 1000)
        self.finish(self.client("-n", "20M"))

    def test_duplicated_packets_are_delivered_once(self):
        self.up(4, "250mbit")
        fabric("dup", "all", 200)
        self.server()
        self.finish(self.client("-t", 3, "--bidir"))
        self.assertGreater(min(row["dup"] for row in harness.stat()), 0)


if __name__ == "__main__":
    harness.main()
