#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""srd-info on this host: the UDP driver is there, in both forms of the report."""
import json
import subprocess

import tools


def run(*options):
    return subprocess.run([tools.INFO, *options], capture_output=True, text=True, check=False, timeout=30)


class Info(tools.ToolTest):
    def test_text(self):
        done = run()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("udp", done.stdout)
        self.assertIn("Datagram bytes", done.stdout)

    def test_json(self):
        done = run("--json")
        self.assertEqual(done.returncode, 0, done.stderr)
        report = json.loads(done.stdout)
        udp = next(device for device in report["devices"] if device["driver"] == "udp")
        self.assertTrue(udp["usable"])
        self.assertGreater(udp["limits"]["datagram_bytes_max"], 1000)
        self.assertGreater(udp["limits"]["paths_max"], 1)
        self.assertEqual(udp["description"], "UDP sockets")
        # Each is either there or missing; on a kernel that runs the tests these three are there.
        self.assertEqual(set(udp["capabilities"]) | set(udp["missing"]),
                         {"gso", "gro", "ecn", "timestamps", "pktinfo", "error-queue",
                          "drop-counter", "ipv6"})
        self.assertFalse(set(udp["capabilities"]) & set(udp["missing"]))
        self.assertLessEqual({"gso", "gro", "ecn"}, set(udp["capabilities"]))

    def test_the_device_it_names_opens(self):
        report = json.loads(run("--json").stdout)
        device = next(entry for entry in report["devices"] if entry["usable"])
        self.run_client(self.server("--device", device["device"]), "-t", "0.3", "--device",
                        device["device"])

    def test_usage(self):
        done = run("--nonsense")
        self.assertEqual(done.returncode, 2)
        self.assertIn("--help", done.stderr)
        self.assertEqual(run("--help").returncode, 0)
        self.assertIn("srd-info", run("--version").stdout)


if __name__ == "__main__":
    tools.main()
