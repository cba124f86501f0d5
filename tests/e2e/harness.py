# SPDX-License-Identifier: Apache-2.0
"""What the end-to-end tests share: a fabric of network namespaces per test, processes on its hosts.
A test file calls main()."""
import contextlib
import ctypes
import os
import pathlib
import socket
import subprocess
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
from isolated import FABRIC, INSIDE, ROOT, SKIPPED, main  # noqa: E402, F401  pylint: disable=wrong-import-position
from processes import Process, libc, wait_until  # noqa: E402, F401  pylint: disable=wrong-import-position

CLONE_NEWNET = 0x40000000


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


class FabricTest(unittest.TestCase):
    """Each test method builds the fabric it wants by self.up(); it is gone after the test."""

    maxDiff = None

    def up(self, *arguments, **env):
        fabric("up", *arguments, env=env)
        self.addCleanup(fabric, "down")

    def start(self, host, *arguments, name=None):
        """Starts a process on a host; it is killed at the end of the test."""
        name = name or pathlib.Path(str(arguments[0])).name
        process = Process([FABRIC, "exec", host, *arguments], name)  # fabric exec becomes the command
        self.addCleanup(process.close)
        return process
