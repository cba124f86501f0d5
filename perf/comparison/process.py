# SPDX-License-Identifier: Apache-2.0
"""Processes of a measurement: those of the tests (tests/support), whose failures are results here."""
import os
import pathlib
import shutil
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "tests" / "support"))
import processes  # noqa: E402  pylint: disable=wrong-import-position

from comparison.result import Failure, Unavailable  # noqa: E402  pylint: disable=wrong-import-position

# Debian's package for each program that is not part of the project.
PACKAGES = {"iperf3": "iperf3", "sockperf": "sockperf", "cc": "gcc", "ip": "iproute2", "nft": "nftables"}
end_with_parent = processes.end_with_parent


def need(program):
    """Full path of a program of the system."""
    found = shutil.which(program, path=os.environ.get("PATH", os.defpath) + ":/usr/sbin:/sbin")
    if found is None:
        raise Unavailable(f"{program} is missing. Debian: apt-get install {PACKAGES[program]}")
    return found


class Hung(Failure):
    """A process has not ended in the time that it was given."""


class Process(processes.Process):
    """A running program, see there."""

    hung = Hung
