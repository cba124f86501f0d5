# SPDX-License-Identifier: Apache-2.0
"""What the loopback tests of the tools share: servers on free ports, clients, their reports."""
import contextlib
import json
import os
import socket
import subprocess
import sys
import tempfile
import time
import unittest

PERF = os.environ.get("SRD_PERF", "srd-perf")
INFO = os.environ.get("SRD_INFO", "srd-info")
SKIPPED = 77
# Under a sanitizer or beside other work a run takes longer; nothing here measures speed.
TIMEOUT_S = 60


def free_port():
    """A UDP port that nobody has now."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Process:
    """A running tool; output goes to files, so that it can never block."""

    def __init__(self, command):
        self.command = [str(word) for word in command]
        self.out = tempfile.TemporaryFile("w+")
        self.err = tempfile.TemporaryFile("w+")
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self.out,
                                        stderr=self.err)
        self.pid = self.process.pid

    def signal(self, number):
        self.process.send_signal(number)

    def wait(self, timeout_s=TIMEOUT_S):
        """Its exit code."""
        try:
            return self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"{' '.join(self.command)} did not end within {timeout_s} s:\n"
                                 f"{self.stdout()}{self.stderr()}") from None

    def is_running(self):
        return self.process.poll() is None

    def stdout(self):
        self.out.seek(0)
        return self.out.read()

    def stderr(self):
        self.err.seek(0)
        return self.err.read()

    def close(self):
        if self.is_running():
            self.process.kill()
            self.process.wait()
        self.out.close()
        self.err.close()


def listens(port):
    """Is a UDP port open on this host?"""
    for name in ("/proc/net/udp", "/proc/net/udp6"):
        with contextlib.suppress(FileNotFoundError), open(name, encoding="ascii") as table:
            for line in table.readlines()[1:]:
                if int(line.split()[1].rpartition(":")[2], 16) == port:
                    return True
    return False


def wait_until(condition, what, timeout_s=10.0):
    deadline = time.monotonic() + timeout_s
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.02)


class ToolTest(unittest.TestCase):
    """Starts tools and ends them, whatever happens."""

    def start(self, *command):
        process = Process(command)
        self.addCleanup(process.close)
        return process

    def server(self, *options):
        """A listening srd-perf server; its port is server.port."""
        port = free_port()
        process = self.start(PERF, "-s", "-p", port, *options)
        process.port = port
        wait_until(lambda: listens(port) or not process.is_running(), "the server listens")
        self.assertTrue(process.is_running(), process.stderr())
        return process

    def client(self, server, *options, host="127.0.0.1"):
        """A started client."""
        return self.start(PERF, "-c", host, "-p", server.port, *options)

    def run_client(self, server, *options, exit_code=0, host="127.0.0.1"):
        """A client's whole run; returns what it printed."""
        process = self.client(server, *options, host=host)
        got = process.wait()
        self.assertEqual(got, exit_code, process.stdout() + process.stderr())
        return process.stdout()

    def run_json(self, server, *options, exit_code=0):
        return json.loads(self.run_client(server, *options, "-J", exit_code=exit_code))

    def assert_moved(self, report, least_bytes=1):
        """Both ends of a forward test counted something plausible."""
        sent, received = report["end"]["sum_sent"], report["end"]["sum_received"]
        self.assertGreaterEqual(sent["bytes"], least_bytes)
        self.assertGreaterEqual(received["bytes"], least_bytes)


def main():
    """Runs the tests named on the command line; exits with 77 if all of them were skipped."""
    program = unittest.main(exit=False, verbosity=2)
    result = program.result
    if result.testsRun == 0:
        print("no test of that name")
        sys.exit(1)
    if result.wasSuccessful() and len(result.skipped) == result.testsRun:
        for _, reason in result.skipped:
            print(f"SKIP: {reason}")
        sys.exit(SKIPPED)
    sys.exit(0 if result.wasSuccessful() else 1)
