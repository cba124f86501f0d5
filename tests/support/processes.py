# SPDX-License-Identifier: Apache-2.0
"""Processes under test or under measurement: output in files, processor time, and none of them left over."""
import ctypes
import json
import os
import subprocess
import tempfile
import time
from signal import SIGKILL, SIGTERM

PR_SET_PDEATHSIG = 1
libc = ctypes.CDLL(None, use_errno=True)


def end_with_parent(number=SIGKILL):
    """In a child before exec: the kernel ends it when this process ends, however that happens."""
    libc.prctl(PR_SET_PDEATHSIG, number)


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


class Hung(AssertionError):
    """A process has not ended in the time that it was given."""


class Process:
    """A running program. Its output goes to files, so that it never blocks on us. Also a context manager: at
    the end of the block it does not run any more."""

    hung = Hung  # what wait() raises

    def __init__(self, command, name=None, env=None):
        self.command = [str(word) for word in command]
        self.name = name or os.path.basename(self.command[0])
        self.cpu_s = 0.0  # user and system time, once it has ended
        self._out = tempfile.TemporaryFile()
        self._err = tempfile.TemporaryFile()
        # A session of its own: Ctrl-C reaches only us, and we end everything in order.
        self._process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=self._out, stderr=self._err,
                                         start_new_session=True, preexec_fn=end_with_parent,
                                         env={**os.environ, **(env or {})})
        self._code = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    @property
    def pid(self):
        return self._process.pid

    @property
    def code(self):
        """Exit code, None while it runs, -N if signal N ended it."""
        if self._code is None:
            pid, status, usage = os.wait4(self.pid, os.WNOHANG)
            if pid != 0:
                self._code = self._process.returncode = os.waitstatus_to_exitcode(status)
                self.cpu_s = usage.ru_utime + usage.ru_stime
        return self._code

    def is_running(self):
        return self.code is None

    def wait(self, timeout_s):
        """Its exit code; raises Hung with what it printed if it still runs after timeout_s."""
        deadline = time.monotonic() + timeout_s
        while self.is_running():
            if time.monotonic() > deadline:
                raise self.hung(f"still running after {timeout_s:g} s: {self.describe()}")
            time.sleep(0.01)
        return self.code

    def signal(self, number):
        if self.is_running():
            os.kill(self.pid, number)

    def end(self, number=SIGTERM):
        """Ends it with that signal, and after two seconds by force."""
        self.signal(number)
        try:
            self.wait(2)
        except self.hung:
            self.kill()

    def kill(self):
        self.signal(SIGKILL)
        self.wait(10)

    def close(self):
        """Ends it and all that it has started, and forgets its output."""
        if self.is_running():
            os.killpg(self.pid, SIGKILL)
            self.wait(10)
        self._out.close()
        self._err.close()

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

    def describe(self):
        state = "running" if self.code is None else f"exit code {self.code}"
        return (f"{self.name}: {' '.join(self.command)}\n{state}\n"
                f"standard output:\n{self.out[-4000:]}\nstandard error:\n{self.err[-4000:]}")
