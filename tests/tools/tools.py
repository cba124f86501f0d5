# SPDX-License-Identifier: Apache-2.0
"""What the loopback tests of the tools share: servers on free ports, clients, their reports. The loopback is
one of their own: servers that listen on every address would be reachable from outside otherwise."""
import contextlib
import json
import os
import pathlib
import socket
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import isolated  # noqa: E402  pylint: disable=wrong-import-position
from processes import Process, wait_until  # noqa: E402, F401  pylint: disable=wrong-import-position

PERF = os.environ.get("SRD_PERF", str(isolated.ROOT / "build/apps/srd-perf"))
INFO = os.environ.get("SRD_INFO", str(isolated.ROOT / "build/apps/srd-info"))
# Under a sanitizer or beside other work a run takes longer; nothing here measures speed.
TIMEOUT_S = 60


def free_port():
    """A UDP port that nobody has now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def listens(port):
    """Is a UDP port open on this host?"""
    for name in ("/proc/net/udp", "/proc/net/udp6"):
        with contextlib.suppress(FileNotFoundError), open(name, encoding="ascii") as table:
            for line in table.readlines()[1:]:
                if int(line.split()[1].rpartition(":")[2], 16) == port:
                    return True
    return False


class ToolTest(unittest.TestCase):
    """Starts tools and ends them, whatever happens."""

    def start(self, *command):
        process = Process(command)
        self.addCleanup(process.close)
        return process

    def server(self, *options, before=()):
        """A listening srd-perf server; its port is server.port. `before`: command that starts it."""
        port = free_port()
        process = self.start(*before, PERF, "-s", "-p", port, *options)
        process.port = port
        wait_until(lambda: listens(port) or not process.is_running(), "the server listens")
        self.assertTrue(process.is_running(), process.describe())
        return process

    def client(self, server, *options, host="127.0.0.1"):
        """A started client."""
        return self.start(PERF, "-c", host, "-p", server.port, *options)

    def run_client(self, server, *options, exit_code=0, host="127.0.0.1"):
        """A client's whole run; returns what it printed."""
        process = self.client(server, *options, host=host)
        got = process.wait(TIMEOUT_S)
        self.assertEqual(got, exit_code, process.describe())
        return process.out

    def run_json(self, server, *options, exit_code=0):
        return json.loads(self.run_client(server, *options, "-J", exit_code=exit_code))

    def assert_moved(self, report, least_bytes=1):
        """Both ends of a forward test counted something plausible."""
        sent, received = report["end"]["sum_sent"], report["end"]["sum_received"]
        self.assertGreaterEqual(sent["bytes"], least_bytes)
        self.assertGreaterEqual(received["bytes"], least_bytes)


def main():
    """Entry of a test file: arguments are those of unittest (names of tests)."""
    isolated.main(("run", "--", "true"))
