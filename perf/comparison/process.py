# SPDX-License-Identifier: Apache-2.0
"""Processes of a measurement: their output in files, their processor time, and none of them left over."""
import ctypes
import os
import shutil
import signal
import subprocess
import tempfile
import time

from comparison.result import Failure, Unavailable

# Debian's package for each program that is not part of the project.
PACKAGES = {"iperf3": "iperf3", "sockperf": "sockperf", "cc": "gcc", "ip": "iproute2", "nft": "nftables"}
PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


def need(program):
    """Full path of a program of the system."""
    found = shutil.which(program, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    if found is None:
        raise Unavailable(f"{program} is missing. Debian: apt-get install {PACKAGES[program]}")
    return found


def end_with_parent(number=signal.SIGKILL):
    """In a child before exec: the kernel ends it when this process ends, however that happens."""
    libc.prctl(PR_SET_PDEATHSIG, number)


class Hung(Failure):
    """A process has not ended in the time that it was given."""


class Process:
    """A running program. It is a context manager: at the end of the block it does not run any more."""

    def __init__(self, command, env=None):
        self.command = [str(word) for word in command]
        self._out = tempfile.TemporaryFile()
        self._err = tempfile.TemporaryFile()
        # A session of its own: Ctrl-C reaches compare.py only, which then ends everything in order.
        self._process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err,
                                         start_new_session=True, preexec_fn=end_with_parent,
                                         env={**os.environ, **(env or {})})
        self.pid = self._process.pid
        self.code = None  # of exit, or -N for signal N; None while it runs
        self.cpu_s = 0.0  # user and system time, once it has ended

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.end(signal.SIGKILL)
        self._out.close()
        self._err.close()

    def poll(self):
        """True if it has ended."""
        if self.code is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid != 0:
                self.code = self._process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = usage.ru_utime + usage.ru_stime
        return self.code is not None

    def wait(self, timeout_s):
        """Waits for its end; raises Hung if it still runs then."""
        deadline = time.monotonic() + timeout_s
        while not self.poll():
            if time.monotonic() > deadline:
                raise Hung(f"still running after {timeout_s:g} s: {self.describe()}")
            time.sleep(0.02)

    def end(self, number=signal.SIGTERM):
        """Ends it with that signal, and after two seconds by force."""
        if self.poll():
            return
        os.kill(self.pid, number)
        try:
            self.wait(2)
        except Hung:
            os.kill(self.pid, signal.SIGKILL)
            self.wait(2)

    @property
    def out(self):
        return os.pread(self._out.fileno(), 1 << 30, 0).decode("utf-8", "replace")

    @property
    def err(self):
        return os.pread(self._err.fileno(), 1 << 30, 0).decode("utf-8", "replace")

    def describe(self):
        state = "running" if self.code is None else f"exit code {self.code}"
        return f"{' '.join(self.command)}\n{state}\n{self.out[-2000:]}\n{self.err[-2000:]}".rstrip()
