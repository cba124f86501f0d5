# SPDX-License-Identifier: Apache-2.0
"""Where server and client run: both on this host over loopback, or on the two hosts of tests/fabric."""
import contextlib
import pathlib
import re
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tests" / "e2e"))
import harness  # noqa: E402  pylint: disable=wrong-import-position  (the end-to-end tests' way into the fabric)

from comparison.result import Failure  # noqa: E402  pylint: disable=wrong-import-position

MPTCP_SUBFLOWS = 4


class Loopback:
    """Server and client on this host."""

    target = "127.0.0.1"

    def command(self, _end, words):
        return list(words)

    def machine(self, _end):
        return contextlib.nullcontext()


class Fabric:
    """Client on host A, server on host B, `paths` paths of `rate` between them; a context manager."""

    target = harness.address("B")
    hosts = {"client": "A", "server": "B"}

    def __init__(self, paths=4, rate="1gbit", segmented=False):
        self.paths = paths
        self._rate = rate
        self._segmented = segmented

    def __enter__(self):
        harness.fabric("up", self.paths, self._rate)
        if self._segmented:
            harness.fabric("segment", "on")
        return self

    def __exit__(self, *_):
        harness.fabric("down")

    def knob(self, *words):
        """A command of tests/fabric, such as "loss", "all", 10."""
        harness.fabric(*words)

    def command(self, end, words):
        return [harness.FABRIC, "exec", self.hosts.get(end, end), *words]

    def machine(self, end):
        """The calling thread is on that end (or leafA, spine0, ...) within the block."""
        return harness.machine(self.hosts.get(end, end))

    def allow_mptcp(self):
        """So many subflows for each MPTCP connection from A to B."""
        harness.fabric("mptcp", MPTCP_SUBFLOWS)

    def mptcp_joins(self):
        """Subflows that have joined a connection at B so far."""
        with self.machine("server"), open("/proc/thread-self/net/netstat", encoding="ascii") as text:
            names, values = [line.split()[1:] for line in text if line.startswith("MPTcpExt:")]
        return int(dict(zip(names, values))["MPJoinAckRx"])


class SentBytes:
    """Bytes that a device of a machine has sent; cheap enough to be read thousands of times a second."""

    def __init__(self, fabric, machine, device):
        self._find = re.compile(rf"\b{device}:\s*((?:\d+\s+)+)")
        with fabric.machine(machine):
            # The file shows the network of the moment when it was opened. Unbuffered: read anew each time.
            self._file = open("/proc/thread-self/net/dev", "rb", buffering=0)  # noqa: SIM115

    def read(self):
        self._file.seek(0)
        return int(self._find.search(self._file.read(65536).decode("ascii")).group(1).split()[8])

    def close(self):
        self._file.close()


def wait_for_port(place, protocol, port, process, timeout_s=5.0):
    """Waits until `process` has opened that port ("tcp": listens on it) at the server's end."""
    deadline = time.monotonic() + timeout_s
    while not is_open(place, protocol, port):
        if not process.is_running():
            raise Failure(f"the server ended before it opened {protocol} port {port}: {process.describe()}")
        if time.monotonic() > deadline:
            raise Failure(f"{protocol} port {port} is not open after {timeout_s} s: {process.describe()}")
        time.sleep(0.02)


def is_open(place, protocol, port):
    listening = "0A" if protocol == "tcp" else "07"
    with place.machine("server"):
        for family in protocol, f"{protocol}6":
            with contextlib.suppress(FileNotFoundError), \
                    open(f"/proc/thread-self/net/{family}", encoding="ascii") as rows:
                for row in list(rows)[1:]:
                    words = row.split()
                    if words[1].endswith(f":{port:04X}") and words[3] == listening:
                        return True
    return False
