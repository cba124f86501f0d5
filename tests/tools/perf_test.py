#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""srd-perf over loopback: what each option does, as a user sees it."""
import pathlib
import re
import signal
import subprocess
import tempfile
import time

import tools

LINE = re.compile(r"\[ *\d+\] +\d+\.\d\d-\d+\.\d\d +sec +[\d.]+ [KMGT]?Bytes +[\d.]+ [KMG]?bits/sec")


class Throughput(tools.ToolTest):
    def test_text_looks_like_iperf3(self):
        text = self.run_client(self.server(), "-t", "2", "-i", "0.5")
        self.assertIn("Connecting to host 127.0.0.1, port", text)
        self.assertRegex(text, r"\[  1\] local 127\.0\.0\.1 port \d+ connected to 127\.0\.0\.1 port \d+")
        self.assertIn("[ ID] Interval           Transfer     Bitrate         Retr  Cwnd", text)
        lines = [line for line in text.splitlines() if LINE.match(line)]
        self.assertEqual(len(lines), 4 + 2, text)
        self.assertTrue(lines[-2].endswith("sender") and lines[-1].endswith("receiver"), text)
        self.assertRegex(text, r"Paths of the client: \d+ used")
        self.assertTrue(text.rstrip().endswith("srd-perf Done."), text)

    def test_server_prints_each_test(self):
        server = self.server("-1")
        self.run_client(server, "-t", "0.5")
        self.assertEqual(server.wait(tools.TIMEOUT_S), 0)
        text = server.out
        self.assertIn(f"Server listening on {server.port}", text)
        self.assertRegex(text, r"Accepted connection from 127\.0\.0\.1, port \d+")
        self.assertRegex(text, r"receiver")

    def test_parallel_streams_have_a_sum(self):
        text = self.run_client(self.server(), "-t", "0.5", "-P", "3")
        self.assertIn("[SUM]", text)
        for stream in ("[  1]", "[  2]", "[  3]"):
            self.assertIn(stream, text)

    def test_reverse_sends_from_the_server(self):
        report = self.run_json(self.server(), "-t", "0.5", "-R")
        self.assert_moved(report)
        self.assertFalse(report["end"]["sum_sent"]["sender"])
        self.assertEqual(report["srd"]["messages_sent"], 0)
        self.assertGreater(report["srd"]["messages_received"], 0)

    def test_both_directions_at_once(self):
        text = self.run_client(self.server(), "-t", "0.5", "--bidir")
        self.assertIn("[TX-C]", text)
        self.assertIn("[RX-C]", text)

    def test_bytes_end_the_test(self):
        for options in ([], ["-R"], ["-P", "4"]):
            report = self.run_json(self.server(), "-n", "20M", *options)
            self.assertEqual(report["end"]["sum_sent"]["bytes"], 20 << 20, options)
            self.assertEqual(report["end"]["sum_received"]["bytes"], 20 << 20, options)

    def test_bytes_end_both_directions(self):
        report = self.run_json(self.server(), "-n", "5M", "--bidir")
        self.assertEqual(report["end"]["sum_sent"]["bytes"], 5 << 20)
        self.assertEqual(report["end"]["sum_sent_bidir_reverse"]["bytes"], 5 << 20)

    def test_messages_of_any_size(self):
        server = self.server()
        for length in (1, 7, 64, 1400, 1500, 9000, 100_001, 3 << 20, 16 << 20):
            count = max(3, min(2000, (20 << 20) // length))
            report = self.run_json(server, "-n", length * count, "-l", length)
            self.assertEqual(report["end"]["sum_sent"]["bytes"], length * count)
            self.assertEqual(report["srd"]["messages_sent"], count)
            self.assertEqual(report["srd"]["remote"]["messages_received"], count)

    def test_bitrate_is_held(self):
        report = self.run_json(self.server(), "-t", "2", "-b", "40M", "-l", "8K")
        rate = report["end"]["sum_received"]["bits_per_second"]
        self.assertGreater(rate, 36e6)
        self.assertLess(rate, 44e6)
        self.assertEqual(report["start"]["target_bitrate"], 40_000_000)

    def test_omitted_seconds_do_not_count(self):
        report = self.run_json(self.server(), "-t", "1", "-O", "0.5", "-i", "0.5", "-b", "80M", "-l", "8K")
        omitted = [interval["sum"]["omitted"] for interval in report["intervals"]]
        self.assertEqual(omitted, [True, False, False])
        self.assertAlmostEqual(report["end"]["sum_sent"]["seconds"], 1, delta=0.2)
        self.assertAlmostEqual(report["end"]["sum_sent"]["bytes"], 1e7, delta=2e6)
        measured = sum(interval["sum"]["bytes"] for interval in report["intervals"][1:])
        self.assertEqual(measured, report["end"]["sum_sent"]["bytes"])

    def test_intervals_add_up_to_the_end(self):
        report = self.run_json(self.server(), "-t", "1", "-i", "0.1", "-P", "2")
        self.assertGreaterEqual(len(report["intervals"]), 8)
        total = sum(interval["sum"]["bytes"] for interval in report["intervals"])
        self.assertEqual(total, report["end"]["sum_sent"]["bytes"])

    def test_verify_checks_every_message_both_ways(self):
        server = self.server()
        for options in (["-l", "8"], ["-l", "1001"], ["-l", "64K", "-P", "3"], ["-l", "2M"],
                        ["-R", "-l", "5000"], ["--bidir", "-l", "20K"]):
            report = self.run_json(server, "--verify", "-n", "3M", *options)
            sides = (report["srd"], report["srd"]["remote"])
            received = sum(side["messages_received"] for side in sides)
            self.assertGreater(received, 0)
            self.assertEqual(sum(side["messages_verified"] for side in sides), received, options)

    def test_several_clients_at_once(self):
        server = self.server()
        clients = [self.client(server, "-t", "1.5", "-b", "20M", "-l", "16K", "-J") for _ in range(8)]
        reports = []
        for client in clients:
            self.assertEqual(client.wait(tools.TIMEOUT_S), 0, client.describe())
            reports.append(client.json())
        begins = [report["start"]["timestamp"]["timesecs"] for report in reports]
        self.assertLessEqual(max(begins) - min(begins), 2)
        for report in reports:
            own, remote = report["srd"], report["srd"]["remote"]
            self.assertEqual(own["messages_sent"], remote["messages_received"])
            # The server counts for each client apart: control messages are a few more, others none.
            counted = remote["counters"]["rx_messages"]
            self.assertGreaterEqual(counted, remote["messages_received"])
            self.assertLess(counted, remote["messages_received"] + 20)
            self.assertLess(remote["counters"]["rx_datagrams"], own["counters"]["tx_datagrams"] + 50)
            self.assertGreater(remote["endpoint_counters"]["rx_messages"], 2 * counted)
        self.assertTrue(server.is_running())

    def test_a_one_off_server_refuses_a_second_client(self):
        server = self.server("-1")
        first = self.client(server, "-t", "3")
        time.sleep(0.5)
        second = self.client(server, "-t", "0.5")
        self.assertEqual(second.wait(tools.TIMEOUT_S), 1)
        self.assertIn("one client only", second.err)
        self.assertEqual(first.wait(tools.TIMEOUT_S), 0, first.err)
        self.assertEqual(server.wait(tools.TIMEOUT_S), 0)

    def test_bins_hold_what_was_received(self):
        before = time.clock_gettime_ns(time.CLOCK_MONOTONIC)
        report = self.run_json(self.server(), "-t", "0.5", "--bins-ms", "1", "-l", "16K")
        bins = report["srd"]["remote"]["bins"]
        self.assertEqual(bins["bin_ms"], 1)
        self.assertGreater(bins["start_monotonic_ns"], before)
        self.assertLess(bins["start_monotonic_ns"], time.clock_gettime_ns(time.CLOCK_MONOTONIC))
        self.assertEqual(sum(bins["bytes"]), report["srd"]["remote"]["messages_received"] * (16 << 10))
        self.assertGreater(len(bins["bytes"]), 300)
        self.assertGreater(sum(1 for amount in bins["bytes"] if amount > 0), 10)

    def test_a_server_logs_bins_by_itself(self):
        server = self.server("-1", "-J", "--bins-ms", "5")
        self.run_client(server, "-t", "0.3")
        self.assertEqual(server.wait(tools.TIMEOUT_S), 0)
        self.assertEqual(server.json()["srd"]["bins"]["bin_ms"], 5)

    def test_paths_are_as_many_as_asked_for(self):
        report = self.run_json(self.server(), "-t", "0.5", "--paths", "4")
        used = [path for path in report["srd"]["paths"] if path["datagrams"] > 0]
        self.assertGreater(len(used), 1)
        self.assertLessEqual(len(used), 4)
        self.assertEqual(len({path["local_port"] for path in used}), len(used))

    def test_ipv6(self):
        server = self.server()
        self.run_client(server, "-t", "0.3", "-6", host="::1")
        self.run_client(server, "-t", "0.3", "-4", host="localhost")

    def test_bind_and_client_port(self):
        port = tools.free_port()
        report = self.run_json(self.server("-B", "127.0.0.1"), "-t", "0.3", "-B", "127.0.0.1",
                               "--cport", port)
        self.assertEqual(report["start"]["connected"][0]["local_host"], "127.0.0.1")

    def test_log_file_and_title(self):
        with tempfile.TemporaryDirectory() as folder:
            log = pathlib.Path(folder) / "log"
            printed = self.run_client(self.server(), "-t", "0.3", "--logfile", log, "-T", "mine")
            self.assertEqual(printed, "")
            lines = log.read_text().splitlines()
            self.assertTrue(lines)
            for line in lines:
                self.assertTrue(line.startswith("mine:"), line)

    def test_server_output_comes_along(self):
        text = self.run_client(self.server(), "-t", "0.3", "--get-server-output")
        self.assertIn("Server output:", text)
        self.assertIn("Accepted connection from", text)
        report = self.run_json(self.server("-J"), "-t", "0.3", "--get-server-output")
        self.assertIn("accepted_connection", report["server_output_json"]["start"])

    def test_an_idle_server_uses_no_cpu(self):
        server = self.server()
        self.run_client(server, "-t", "0.3")
        time.sleep(1)
        stat = pathlib.Path(f"/proc/{server.pid}/stat")

        def ticks():
            fields = stat.read_text().rpartition(")")[2].split()
            return int(fields[11]) + int(fields[12])

        before = ticks()
        time.sleep(3)
        self.assertLessEqual(ticks() - before, 1)


class Latency(tools.ToolTest):
    def test_closed_loop(self):
        report = self.run_json(self.server(), "--latency", "-t", "1")
        latency = report["srd"]["latency_us"]
        self.assertGreater(latency["count"], 100)
        self.assertEqual(latency["unanswered"], 0)
        values = [latency[key] for key in ("min", "p50", "p90", "p99", "p99.9", "p99.99", "max")]
        self.assertEqual(values, sorted(values))
        self.assertGreater(latency["min"], 1)

    def test_deeper_loops_answer_more(self):
        server = self.server()
        for depth in (1, 32):
            report = self.run_json(server, "--latency", "-t", "0.5", "--depth", depth, "--verify",
                                   "--size", "1000", "--response-size", "3000")
            self.assertGreater(report["srd"]["latency_us"]["count"], depth)

    def test_open_loop_keeps_its_schedule(self):
        report = self.run_json(self.server(), "--latency", "-t", "2", "--rate", "1K", "--size", "4K")
        latency = report["srd"]["latency_us"]
        self.assertAlmostEqual(latency["count"], 2000, delta=20)
        self.assertEqual(latency["unanswered"], 0)

    def test_a_stall_delays_all_requests_it_held_up(self):
        # 1000 requests per second, 0.5 of 2 s stopped: a quarter of all requests wait, up to 0.5 s. A
        # tool that waits with the server would count one slow request.
        server = self.server()
        client = self.client(server, "--latency", "-t", "2", "--rate", "1000", "-J")
        time.sleep(0.7)
        server.signal(signal.SIGSTOP)
        time.sleep(0.5)
        server.signal(signal.SIGCONT)
        self.assertEqual(client.wait(tools.TIMEOUT_S), 0, client.err)
        latency = client.json()["srd"]["latency_us"]
        self.assertAlmostEqual(latency["count"], 2000, delta=20)
        self.assertGreater(latency["max"], 450_000)
        self.assertGreater(latency["p90"], 150_000)

    def test_text_shows_percentiles(self):
        text = self.run_client(self.server(), "--latency", "-t", "0.5")
        self.assertIn("p99.99", text)
        self.assertIn("Request/response: 64 byte requests, 64 byte answers", text)

    def test_busy_polling(self):
        report = self.run_json(self.server("--busy-poll"), "--latency", "-t", "0.5", "--busy-poll")
        self.assertGreater(report["srd"]["latency_us"]["count"], 10)


class Texts(tools.ToolTest):
    def test_help_and_version(self):
        for option, expected in (("--help", "Examples:"), ("--version", "srd-perf ")):
            done = subprocess.run([tools.PERF, option], capture_output=True, text=True, check=False)
            self.assertEqual(done.returncode, 0)
            self.assertIn(expected, done.stdout)

    def test_the_man_page_has_every_option(self):
        root = pathlib.Path(__file__).resolve().parents[2]
        for program, page in ((tools.PERF, "srd-perf.1"), (tools.INFO, "srd-info.1")):
            text = subprocess.run([program, "--help"], capture_output=True, text=True, check=True).stdout
            manual = (root / "man" / page).read_text().replace("\\-", "-")
            options = set(re.findall(r"^ {2,6}(?:-\w, +)?(--[a-z0-9-]+)", text, re.M))
            self.assertGreater(len(options), 1)
            for option in sorted(options):
                self.assertIn(option, manual)


if __name__ == "__main__":
    tools.main()
