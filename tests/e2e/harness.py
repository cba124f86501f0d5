# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: a fabric of network namespaces per test, processes on its hosts.

A test file calls main(), which runs the tests inside private namespaces (tests/fabric run), so nothing
of them is visible outside and nothing survives them. Where namespaces are refused it prints
"SKIP: reason" and exits with 77.
"""
import contextlib
import ctypes
import json
import os
import pathlib
import signal
import socket
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FABRIC = str(ROOT / "tests/fabric")
SKIPPED = 77
INSIDE = "SRD_E2E_INSIDE"  # set for the copy of the test process that runs inside
CLONE_NEWNET = 0x40000000
libc = ctypes.CDLL(None, use_errno=True)


def program(variable, built):
    """A program under test: CMake names it in the environment; by hand it is the one in build/."""
    return os.environ.get(variable, str(ROOT / "build" / built))


def fabric(*arguments, env=None):
    """Runs one fabric command and returns what it printed; a failure carries its message."""
    command = [FABRIC, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False,
                          env={**os.environ, **(env or {})})
    if done.returncode != 0:
        raise AssertionError(f"{' '.join(command)} exited with {done.returncode}: {done.stderr}")
    return done.stdout


def wait_until(condition, what, timeout_s=10.0):
    """Returns the first true value of condition(); fails with `what` after timeout_s."""
    deadline = time.monotonic() + timeout_s
    while True:
        value = condition()
        if value:
            return value
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {timeout_s} s: {what}")
        time.sleep(0.01)


@contextlib.contextmanager
def machine(name):
    """The calling thread is on that machine of the fabric: its sockets and /proc/net are there."""
    name = {"A": "srdA", "B": "srdB", "C": "srdC"}.get(name, name)
    with open("/proc/thread-self/ns/net", "rb") as home, open(f"/run/netns/{name}", "rb") as there:
        if libc.setns(there.fileno(), CLONE_NEWNET) != 0:
            raise OSError(ctypes.get_errno(), f"setns({name})")
        try:
            yield
        finally:
            libc.setns(home.fileno(), CLONE_NEWNET)


def udp_socket(host, family=4, port=0):
    """A UDP socket on that host, bound to its fabric address, with a large receive buffer."""
    with machine(host):
        made = socket.socket(socket.AF_INET if family == 4 else socket.AF_INET6, socket.SOCK_DGRAM)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4 << 20)
    made.bind((address(host, family), port))
    return made


def address(host, family=4):
    return {("A", 4): "10.81.1.2", ("B", 4): "10.81.2.2", ("C", 4): "10.83.0.2",
            ("A", 6): "fd81:1::2", ("B", 6): "fd81:2::2", ("C", 6): "fd83::2"}[host, family]


def path_bytes(direction):
    """Bytes the fabric has carried that way so far, one number per path."""
    with machine("leafA" if direction == "ab" else "leafB"):
        with open("/proc/thread-self/net/dev", encoding="ascii") as text:
            rows = dict(line.split(":") for line in text if ":" in line)
    devices = {name.strip(): row.split() for name, row in rows.items() if name.strip().startswith("up")}
    return [int(devices[f"up{path}"][8]) for path in range(len(devices))]


def stat():
    """fabric stat as one dictionary per path."""
    rows = []
    for line in fabric("stat").splitlines():
        words = line.split()
        rows.append({words[i]: int(words[i + 1]) for i in range(0, len(words), 2)})
    return rows


class Process:
    """A process on a host of the fabric. Its output goes to files, so that it never blocks on us."""

    def __init__(self, host, arguments, name):
        self.name = name
        self.arguments = [str(argument) for argument in arguments]
        self._out = tempfile.TemporaryFile("w+", encoding="utf-8")
        self._err = tempfile.TemporaryFile("w+", encoding="utf-8")
        self._process = subprocess.Popen([FABRIC, "exec", host, *self.arguments], stdout=self._out, stderr=self._err,
                                         stdin=subprocess.DEVNULL, start_new_session=True)

    @property
    def pid(self):
        return self._process.pid  # fabric exec becomes the command

    @property
    def code(self):
        """Exit code, None while it runs, -N if signal N ended it."""
        return self._process.poll()

    @property
    def out(self):
        return self._read(self._out)

    @property
    def err(self):
        return self._read(self._err)

    @staticmethod
    def _read(file):
        return os.pread(file.fileno(), 1 << 30, 0).decode("utf-8", "replace")

    def json(self):
        """Its standard output as JSON; a failure shows what it printed."""
        try:
            return json.loads(self.out)
        except json.JSONDecodeError as error:
            raise AssertionError(f"not JSON ({error}): {self.describe()}") from None

    def wait(self, timeout_s=30):
        """Exit code; fails with its output if it is still running after timeout_s."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {timeout_s} s: {self.describe()}") from None

    def signal(self, number):
        self._process.send_signal(number)

    def kill(self):
        if self._process.poll() is None:
            self._process.kill()
        self._process.wait()

    def close(self):
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._out.close()
        self._err.close()

    def describe(self):
        return (f"{self.name}: {' '.join(self.arguments)}\nexit code {self.code}\n"
                f"standard output:\n{self.out[-4000:]}\nstandard error:\n{self.err[-4000:]}")


class FabricTest(unittest.TestCase):
    """Each test method builds the fabric it wants by self.up(); it is gone after the test."""

    maxDiff = None

    def up(self, *arguments, **env):
        fabric("up", *arguments, env=env)
        self.addCleanup(fabric, "down")

    def start(self, host, *arguments, name=None):
        """Starts a process on a host; it is killed at the end of the test."""
        process = Process(host, arguments, name or pathlib.Path(str(arguments[0])).name)
        self.addCleanup(process.close)
        return process


def main():
    """Entry of a test file: arguments are those of unittest (names of tests)."""
    if INSIDE not in os.environ:
        check = subprocess.run([FABRIC, "check"], capture_output=True, text=True, check=False)
        if check.returncode == SKIPPED:
            print(f"SKIP: {check.stderr.strip()}")
            sys.exit(SKIPPED)
        if check.returncode != 0:
            sys.exit(f"fabric check exited with {check.returncode}: {check.stderr}")
        os.environ[INSIDE] = str(os.getuid())
        command = [FABRIC, "run", "--", sys.executable, *sys.argv]
        os.execv(command[0], command)
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print(f"SKIP: {reason} ({test.id()})")
    if result.testsRun == 0 or not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if len(result.skipped) == result.testsRun else 0)
