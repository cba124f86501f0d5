# SPDX-License-Identifier: Apache-2.0
"""Runs the tests of a file in private namespaces (tests/fabric run): nothing of them is visible outside, they
see no network but their own, and nothing survives them. Where namespaces are refused the file prints
"SKIP: reason" and exits with 77."""
import os
import pathlib
import subprocess
import sys
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
FABRIC = str(ROOT / "tests/fabric")
SKIPPED = 77
INSIDE = "SRD_TEST_INSIDE"  # set for the copy of the test process that runs inside


def enter(check):
    """Replaces this process by a copy of it in fresh namespaces; does nothing in that copy. `check` is the
    command of tests/fabric that tells whether this machine can do what the tests need."""
    if INSIDE in os.environ:
        return
    checked = subprocess.run([FABRIC, *check], capture_output=True, text=True, check=False)
    if checked.returncode == SKIPPED:
        print(f"SKIP: {checked.stderr.strip()}")
        sys.exit(SKIPPED)
    if checked.returncode != 0:
        sys.exit(f"fabric {' '.join(check)} exited with {checked.returncode}: {checked.stderr}")
    os.environ[INSIDE] = str(os.getuid())
    command = [FABRIC, "run", "--", sys.executable, *sys.argv]
    os.execv(command[0], command)


def main(check=("check",)):
    """Entry of a test file: arguments are those of unittest (names of tests)."""
    enter(check)
    result = unittest.main(module="__main__", exit=False, verbosity=2).result
    for test, reason in result.skipped:
        print(f"SKIP: {reason} ({test.id()})")
    if result.testsRun == 0 or not result.wasSuccessful():
        sys.exit(1)
    sys.exit(SKIPPED if len(result.skipped) == result.testsRun else 0)
