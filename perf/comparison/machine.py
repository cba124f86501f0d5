# SPDX-License-Identifier: Apache-2.0
"""Where and when figures were measured, and of which source."""
import datetime
import os
import platform
import subprocess

from comparison.place import ROOT


def describe():
    return {"cpu": cpu_model(), "cores": os.cpu_count(), "kernel": f"{platform.system()} {platform.release()}",
            "virtual": is_virtual(), "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d"),
            "commit": commit()}


def cpu_model():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as text:
        for line in text:
            name, _, value = line.partition(":")
            if name.strip() in ("model name", "Model"):
                return value.strip()
    return platform.machine()


def is_virtual():
    with open("/proc/cpuinfo", encoding="ascii", errors="replace") as text:
        return " hypervisor" in text.read()


def commit():
    def git(*words):
        return subprocess.run(["git", "-C", str(ROOT), "-c", f"safe.directory={ROOT}", *words],
                              capture_output=True, text=True, check=True).stdout.strip()
    try:
        changed = " with changes" if git("status", "--porcelain", "--untracked-files=no") else ""
        return git("rev-parse", "--short=12", "HEAD") + changed
    except (OSError, subprocess.CalledProcessError):
        return "unknown"


def text(machine):
    virtual = ", virtual machine" if machine["virtual"] else ""
    return f"{machine['cpu']}, {machine['cores']} cores{virtual}, {machine['kernel']}"
