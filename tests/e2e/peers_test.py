#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Processes that die, restart, stop, starve or come in crowds."""
import signal
import subprocess
import sys
import time

import harness
from harness import fabric
from perf_tool import PORT, PerfTest, received_bytes, traffic


class Restart(PerfTest):
    def test_server_killed_and_restarted_in_mid_flow(self):
        self.up(4, "400mbit")
        server = self.server()
        client = self.client("-t", 30)
        self.flowing()
        server.kill()
        self.server()
        self.fail_to(client, "(?i)restart")
        self.finish(self.client("-n", "50M"))

    def test_server_killed_for_good(self):
        self.up(4, "400mbit")
        server = self.server()
        client = self.client("-t", 30)
        self.flowing()
        server.kill()
        self.fail_to(client, "(?i)stopped answering|unreachable")

    def test_no_server(self):
        self.up(4, "400mbit")
        self.fail_to(self.client("-t", 1), rf"{harness.address('B')}.*{PORT}")

    def test_client_vanishes_and_the_server_serves_the_next(self):
        self.up(4, "400mbit")
        server = self.server()
        for options in ["-t", 30], ["-t", 30, "-R"], ["-t", 30, "--bidir"]:
            client = self.client(*options)
            self.flowing("ba" if "-R" in options else "ab")
            client.kill()
            self.finish(self.client("-n", "20M"))
        self.assertIsNone(server.code, server.describe())


class ShrunkRoute(PerfTest):
    def test_lowered_mtu_hangs_nothing(self):
        self.up(4, "400mbit")
        self.server()
        client = self.client("-t", 10)
        self.flowing()
        with harness.machine("A"):
            subprocess.run(["ip", "link", "set", "hA", "mtu", "1400"], check=True)
        # Or it goes on, where nothing was cut for the larger MTU at that moment.
        code = client.wait(20)
        if code != 0:
            self.assertRegex(client.json()["error"], "(?i)context")
        self.finish(self.client("-n", "20M"))


class Stopped(PerfTest):
    def check_stopped(self, stop_server):
        self.up(4, "400mbit")
        server = self.server()
        client = self.client("-t", 6)
        self.flowing()
        process = server if stop_server else client
        process.signal(signal.SIGSTOP)
        time.sleep(1)
        process.signal(signal.SIGCONT)
        self.flowing("ab", 10e6)
        self.finish(client)

    def test_receiver_stopped_for_a_second(self):
        self.check_stopped(True)

    def test_sender_stopped_for_a_second(self):
        self.check_stopped(False)

    def test_sender_and_receiver_starved_by_two_busy_processes(self):
        self.up(4, "400mbit")
        self.server()
        for _ in range(2):
            self.start("A", sys.executable, "-c", "while True: pass", name="busy")
        report = self.finish(self.client("-n", "200M", "--bidir"), 120)
        self.assertGreaterEqual(received_bytes(report), 200 << 20)


class Crowd(PerfTest):
    def test_hundred_clients_to_one_server(self):
        self.up(4, "400mbit")
        server = self.server()
        clients = [self.client("-t", 4, "-b", "2M", "-l", "16K") for _ in range(100)]
        for client in clients:
            self.finish(client, 120)
        self.assertIsNone(server.code, server.describe())

    def test_dead_neighbour_among_many_peers(self):
        """What waits for the address of a dead neighbour must not take the send buffer from the others."""
        self.up(4, "400mbit")
        fabric("neighbour", "up", 4)
        server = self.server()
        dying = [self.client("-t", 30, "-R", "-B", f"10.83.0.{2 + i}", host="C", target="10.83.0.1") for i in range(4)]
        healthy = [self.client("-t", 10, "-R", "-b", "50M") for _ in range(6)]
        self.flowing("ba", 6 * 5e6)
        time.sleep(1)
        before = sum(traffic("ba", 1))
        fabric("neighbour", "dead")
        shares = [sum(traffic("ba", 0.25)) for _ in range(12)]
        for client in healthy:
            self.finish(client)
        self.assertGreater(sum(shares) / 3, 0.7 * before)
        self.assertGreater(min(shares) * 4, 0.3 * before, "no standstill, however short")
        for client in dying:
            client.kill()
        self.finish(self.client("-n", "20M"))
        self.assertIsNone(server.code, server.describe())


if __name__ == "__main__":
    harness.main()
