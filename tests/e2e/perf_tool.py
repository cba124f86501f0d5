# SPDX-License-Identifier: Apache-2.0
"""srd-perf on the hosts of a fabric: starting it, waiting for it, reading its report."""
import signal
import time

import harness
from harness import machine, wait_until

SRD_PERF = harness.program("SRD_PERF", "apps/srd-perf")
PORT = 5211  # default of srd-perf


class PerfTest(harness.FabricTest):
    """Server on B, clients on A, unless a test says otherwise."""

    def server(self, *options, host="B", port=PORT):
        """Starts a server and waits until its port is open."""
        process = self.start(host, SRD_PERF, "-s", "-p", port, *options)
        wait_until(lambda: process.code is not None or port_is_open(host, port), f"UDP port {port} is open on {host}")
        self.assertIsNone(process.code, process.describe())
        return process

    def client(self, *options, host="A", target=None):
        """Starts a client with a JSON report; the server's content is checked wherever it receives."""
        target = target or harness.address("B")
        return self.start(host, SRD_PERF, "-c", target, "-J", "--verify", *options)

    def finish(self, client, timeout_s=40):
        """Waits for a client that must succeed, with every byte checked; returns its report."""
        report = self.checked_report(client, timeout_s)
        self.assertNotIn("error", report, client.describe())
        return report

    def interrupt(self, client):
        """Ends a client that has shown enough; it must have worked so far. As iperf3 it then says who ended it."""
        client.signal(signal.SIGINT)
        report = self.checked_report(client, 10)
        self.assertRegex(report["error"], "SIGINT", client.describe())

    def checked_report(self, client, timeout_s):
        self.assertEqual(client.wait(timeout_s), 0, client.describe())
        report = client.json()
        self.assertGreater(received_bytes(report), 0, client.describe())
        for end in report["srd"], report["srd"]["remote"]:
            self.assertEqual(end["messages_verified"], end["messages_received"], client.describe())
        return report

    def fail_to(self, client, words, timeout_s=40):
        """Waits for a client that must end with a network or peer failure that it explains."""
        self.assertEqual(client.wait(timeout_s), 1, client.describe())
        self.assertRegex(client.json()["error"], words)

    def flowing(self, direction="ab", bytes_per_s=1e6):
        """Waits until that many bytes per second go that way over the fabric."""
        wait_until(lambda: sum(traffic(direction, 0.2)) > 0.2 * bytes_per_s, f"traffic {direction}", 15)


def port_is_open(host, port):
    with machine(host):
        for table in "udp", "udp6":
            with open(f"/proc/thread-self/net/{table}", encoding="ascii") as rows:
                if any(row.split()[1].endswith(f":{port:04X}") for row in list(rows)[1:]):
                    return True
    return False


def traffic(direction, seconds):
    """Bytes on each path, that way, during the next `seconds`."""
    before = harness.path_bytes(direction)
    time.sleep(seconds)
    return [after - start for start, after in zip(before, harness.path_bytes(direction))]


def sum_of(report, key):
    """A counter of report["srd"], both ends together."""
    return report["srd"][key] + report["srd"]["remote"][key]


def marked_datagrams(report):
    """CE marks that either end was told of."""
    return sum(path["ce"] for end in (report["srd"], report["srd"]["remote"]) for path in end["paths"])


def received_bytes(report):
    return report["end"]["sum_received"]["bytes"]


def received_rate(report):
    return report["end"]["sum_received"]["bits_per_second"]
