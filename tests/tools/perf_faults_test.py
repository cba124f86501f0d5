#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""srd-perf when something goes wrong: exit codes, texts, and reports that stay whole."""
import json
import shutil
import signal
import socket
import subprocess
import time

import tools


class Faults(tools.ToolTest):
    def test_no_server(self):
        port = tools.free_port()
        client = self.start(tools.PERF, "-c", "127.0.0.1", "-p", port, "--connect-timeout", "1000")
        self.assertEqual(client.wait(tools.TIMEOUT_S), 1)
        text = client.err
        for part in ("127.0.0.1", str(port), "tries", f"srd-perf -s -p {port}", "firewalls", "address"):
            self.assertIn(part, text)

    def test_no_server_as_json(self):
        client = self.start(tools.PERF, "-c", "127.0.0.1", "-p", tools.free_port(), "-J",
                            "--connect-timeout", "500")
        self.assertEqual(client.wait(tools.TIMEOUT_S), 1)
        report = client.json()
        self.assertIn("no answer from 127.0.0.1", report["error"])
        self.assertEqual(report["end"], {})

    def test_unknown_host(self):
        client = self.start(tools.PERF, "-c", "no-such-host.invalid", "-J")
        self.assertEqual(client.wait(tools.TIMEOUT_S), 1)
        self.assertIn("no-such-host.invalid", client.json()["error"])

    def test_usage_errors_exit_with_2(self):
        for options in ([], ["-s", "-c", "h"], ["-c", "h", "-P", "0"], ["--nonsense"]):
            done = subprocess.run([tools.PERF, *options], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 2, options)
            self.assertIn("--help", done.stderr)
            self.assertEqual(done.stdout, "")
        done = subprocess.run([tools.PERF, "-J", "-c", "h", "-P", "0"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("-P", json.loads(done.stdout)["error"])

    def test_port_in_use(self):
        server = self.server()
        second = self.start(tools.PERF, "-s", "-p", server.port)
        self.assertEqual(second.wait(tools.TIMEOUT_S), 1)
        self.assertIn(str(server.port), second.err)

    def test_unknown_device(self):
        client = self.start(tools.PERF, "-c", "127.0.0.1", "--device", "carrier-pigeon:")
        self.assertEqual(client.wait(tools.TIMEOUT_S), 1)
        self.assertIn("carrier-pigeon", client.err)
        self.assertIn("srd-info", client.err)

    def test_interrupted_client_reports_what_it_has(self):
        for number, name in ((signal.SIGINT, "SIGINT"), (signal.SIGTERM, "SIGTERM"), (signal.SIGHUP, "SIGHUP")):
            server = self.server("-1", "-J")
            client = self.client(server, "-t", "30", "-i", "0.2", "-J")
            time.sleep(1)
            client.signal(number)
            self.assertEqual(client.wait(10), 0, client.err)
            report = client.json()
            self.assertIn(name, report["error"])
            self.assertGreaterEqual(len(report["intervals"]), 2)
            self.assert_moved(report)
            server.wait(10)
            self.assertGreater(server.json()["end"]["sum_received"]["bytes"], 0)

    def test_time_zero_runs_until_it_is_stopped(self):
        for options in ([], ["-R"], ["--bidir"], ["--latency"]):
            with self.subTest(options=options):
                client = self.client(self.server("-1"), "-t", "0", "-i", "0.2", "-V", "-J", *options)
                time.sleep(1)
                self.assertTrue(client.is_running(), client.describe())
                client.signal(signal.SIGINT)
                self.assertEqual(client.wait(10), 0, client.describe())
                report = client.json()
                self.assertEqual(report["start"]["test_start"]["duration"], 0)
                self.assertGreaterEqual(len(report["intervals"]), 2)
                self.assertGreater(report["end"]["sum_received"]["bytes"], 0)

    def test_message_too_large_is_told_with_the_limit(self):
        done = subprocess.run([tools.PERF, "-c", "127.0.0.1", "-l", "5G"], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, 2)
        self.assertIn("outside 1 to 16777216 bytes", done.stderr)

    def test_interrupt_while_connecting(self):
        client = self.start(tools.PERF, "-c", "127.0.0.1", "-p", tools.free_port(), "-J",
                            "--connect-timeout", "30000")
        time.sleep(0.5)
        client.signal(signal.SIGINT)
        self.assertEqual(client.wait(5), 0)
        self.assertIn("interrupt", client.json()["error"])

    def test_interrupted_server_reports_and_its_client_hears_of_it(self):
        server = self.server("-J")
        client = self.client(server, "-t", "30", "-J")
        time.sleep(1)
        server.signal(signal.SIGTERM)
        self.assertEqual(server.wait(10), 0)
        report = server.json()
        self.assertIn("SIGTERM", report["error"])
        self.assertGreater(report["end"]["sum_received"]["bytes"], 0)
        self.assertEqual(client.wait(15), 1)
        report = client.json()
        self.assertTrue(report["error"])
        self.assertGreater(report["end"]["sum_sent"]["bytes"], 0)

    def test_drops_of_a_limited_buffer_come_with_the_command_that_helps(self):
        # Without CAP_NET_ADMIN net.core.rmem_max is the limit, and a server that naps overruns it.
        if shutil.which("setpriv") is None:
            self.skipTest("setpriv (util-linux) is not installed")
        server = self.server("--device", "udp:?rcvbuf_bytes=1073741824",
                             before=("setpriv", "--bounding-set", "-net_admin", "--inh-caps", "-net_admin"))
        clients = [self.client(server, "-t", "3", "-w", "64M", *options)
                   for options in (["-J"], ["-P", "4"], ["-P", "4"], ["-P", "4"])]
        for _ in range(5):
            time.sleep(0.3)
            server.signal(signal.SIGSTOP)
            time.sleep(0.3)
            server.signal(signal.SIGCONT)
        for client in clients:
            self.assertEqual(client.wait(tools.TIMEOUT_S), 0, client.describe())
        remote = clients[0].json()["srd"]["remote"]
        if remote["endpoint_counters"]["rx_host_drops"] == 0:
            self.skipTest("this host dropped nothing")
        self.assertEqual(len(remote["advice"]), 1)
        self.assertIn("sysctl -w net.core.rmem_max=1073741824", remote["advice"][0])
        self.assertIn("Advice for the server's host:\n  datagrams", clients[1].out)
        self.assertEqual(server.err.count("sysctl -w net.core.rmem_max"), 1, server.err)

    def test_interrupted_idle_server(self):
        server = self.server("-J")
        server.signal(signal.SIGINT)
        self.assertEqual(server.wait(10), 0)
        self.assertIn("SIGINT", server.json()["error"])

    def test_killed_server_ends_the_client_with_what_is_known(self):
        for options in ([], ["-R"], ["--latency"]):
            server = self.server()
            client = self.client(server, "-t", "60", "-J", *options)
            time.sleep(1)
            server.signal(signal.SIGKILL)
            self.assertEqual(client.wait(20), 1, options)
            report = client.json()
            self.assertTrue(report["error"])
            self.assertEqual(report["start"]["connected"][0]["remote_port"], server.port)
            self.assertGreater(len(report["intervals"]), 0)

    def test_killed_client_costs_its_own_session_only(self):
        server = self.server()
        for options in ([], ["-R"], ["--latency"]):
            victim = self.client(server, "-t", "60", *options)
            other = self.client(server, "-t", "4", "-b", "8M", "-l", "8K", "--verify", "-J")
            time.sleep(1)
            victim.signal(signal.SIGKILL)
            self.assertEqual(other.wait(tools.TIMEOUT_S), 0, other.describe())
            self.run_client(server, "-t", "0.3")
            tools.wait_until(lambda: "lost the client" in server.err, "the server notices", 10)
            self.assertTrue(server.is_running())

    def test_a_one_off_server_ends_when_its_client_dies(self):
        server = self.server("-1")
        victim = self.client(server, "-t", "60")
        time.sleep(1)
        victim.signal(signal.SIGKILL)
        self.assertEqual(server.wait(20), 1)
        self.assertIn("lost the client", server.err)

    def test_a_stopped_receiver_goes_on(self):
        server = self.server()
        client = self.client(server, "-t", "3", "--verify", "-J")
        time.sleep(1)
        server.signal(signal.SIGSTOP)
        time.sleep(1)
        server.signal(signal.SIGCONT)
        self.assertEqual(client.wait(tools.TIMEOUT_S), 0, client.describe())

    def test_strange_messages_do_not_disturb_a_server(self):
        server = self.server()
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as stranger:
            for payload in (b"", b"x", b"\0" * 64, b"GET / HTTP/1.1\r\n\r\n", bytes(range(256)) * 5):
                stranger.sendto(payload, ("127.0.0.1", server.port))
        self.run_client(server, "-t", "0.3")


if __name__ == "__main__":
    tools.main()
