#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The JSON report beside iperf3's: every key path of a TCP test is there with the same type."""
import json
import shutil
import socket
import subprocess
import time

import tools


def free_tcp_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def kind(value):
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, (int, float)):
        return "number"
    return type(value).__name__


def tree(value, path=""):
    """All key paths with the kind of their value; members of a list share one path."""
    out = {path: kind(value)} if path else {}
    if isinstance(value, dict):
        for key, member in value.items():
            out.update(tree(member, f"{path}.{key}"))
    elif isinstance(value, list):
        for member in value:
            out.update(tree(member, f"{path}[]"))
    return out


class Json(tools.ToolTest):
    def iperf3(self, *options):
        """The client's report of a TCP test over loopback."""
        program = shutil.which("iperf3")
        if program is None:
            self.skipTest("iperf3 is not installed")
        version = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
        if not version.startswith("iperf 3."):
            self.skipTest(f"iperf3 is of another kind: {version.splitlines()[0]}")
        port = free_tcp_port()
        server = self.start(program, "-s", "-1", "-p", port)
        for _ in range(50):
            time.sleep(0.1)
            done = subprocess.run([program, "-c", "127.0.0.1", "-p", str(port), "-J", *options],
                                  capture_output=True, text=True, check=False)
            report = json.loads(done.stdout)
            if "error" not in report:
                server.wait(10)
                return report
        self.fail(f"iperf3: {report['error']}")

    def compare(self, *options):
        theirs = tree(self.iperf3(*options))
        ours = tree(self.run_json(self.server(), *options))
        self.assertGreater(len(theirs), 80)
        missing = sorted(path for path in theirs if path not in ours)
        self.assertEqual(missing, [], "key paths of iperf3 that srd-perf lacks")
        other_kind = sorted(path for path in theirs if ours[path] != theirs[path])
        self.assertEqual(other_kind, [], "values of another kind than iperf3's")

    def test_same_keys_as_iperf3(self):
        self.compare("-t", "1")

    def test_same_keys_as_iperf3_reverse(self):
        self.compare("-t", "1", "-R")

    def test_same_keys_as_iperf3_both_directions(self):
        self.compare("-t", "1", "--bidir")

    def test_same_keys_as_iperf3_parallel(self):
        self.compare("-t", "1", "-P", "2")

    def test_same_keys_as_iperf3_with_more_options(self):
        self.compare("-t", "1", "-b", "100M", "-O", "1", "-T", "title", "--get-server-output")

    def test_same_keys_as_iperf3_by_bytes(self):
        self.compare("-n", "4M")

    def test_stands_for_the_same_things(self):
        report = self.run_json(self.server(), "-t", "1", "-i", "0.5", "-P", "2", "-l", "32K")
        start, end = report["start"], report["end"]
        self.assertEqual(start["test_start"]["protocol"], "SRD")
        self.assertEqual(start["test_start"]["num_streams"], 2)
        self.assertEqual(start["test_start"]["blksize"], 32768)
        self.assertEqual(start["test_start"]["duration"], 1)
        self.assertEqual(len(start["connected"]), 2)
        self.assertGreater(start["tcp_mss_default"], 500)
        for stream in report["intervals"][0]["streams"]:
            self.assertGreater(stream["snd_cwnd"], 0)
            self.assertGreater(stream["rtt"], 0)
            self.assertGreater(stream["pmtu"], start["tcp_mss_default"])
            self.assertAlmostEqual(stream["bits_per_second"], stream["bytes"] * 8 / stream["seconds"],
                                   delta=1 + stream["bits_per_second"] * 1e-6)
        self.assertEqual(sum(stream["sender"]["bytes"] for stream in end["streams"]),
                         end["sum_sent"]["bytes"])
        self.assertEqual(sum(stream["receiver"]["bytes"] for stream in end["streams"]),
                         end["sum_received"]["bytes"])
        self.assertGreater(end["cpu_utilization_percent"]["host_total"], 0)
        self.assertGreater(end["cpu_utilization_percent"]["remote_total"], 0)

    def test_own_keys(self):
        own = self.run_json(self.server(), "-t", "1")["srd"]
        for key in ("messages", "retransmitted", "spurious", "rerolls"):
            self.assertEqual(kind(own[key]), "number", key)
        used = [path for path in own["paths"] if path["datagrams"] > 0]
        self.assertGreater(len(used), 0)
        for path in used:
            for key in ("local_host", "remote_host", "state"):
                self.assertEqual(kind(path[key]), "str", key)
            for key in ("local_port", "remote_port", "bytes", "lost", "ce", "rerolls"):
                self.assertEqual(kind(path[key]), "number", key)
            self.assertEqual(sorted(path["rtt_us"]), ["min", "p50", "p99"])
            self.assertGreater(path["local_port"], 0)
        self.assertAlmostEqual(sum(path["share_percent"] for path in own["paths"]), 100, delta=1e-6)
        for side in (own, own["remote"]):
            self.assertGreater(side["counters"]["tx_datagrams"], 0)
            self.assertGreater(side["counters"]["rx_datagrams"], 0)
            self.assertGreaterEqual(side["endpoint_counters"]["tx_datagrams"],
                                    side["counters"]["tx_datagrams"])
            self.assertEqual(side["endpoint_counters"]["gso_fallbacks"], 0)
            self.assertIsInstance(side["advice"], list)
            self.assertEqual(side["retransmitted"], side["counters"]["tx_retransmits"])
        self.assertGreater(own["remote"]["counters"]["tx_acks"], 0)
        self.assertEqual(sum(path["rerolls"] for path in own["paths"]), own["rerolls"])


if __name__ == "__main__":
    tools.main()
