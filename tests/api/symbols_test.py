#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The shared library exports exactly the functions that srd.h declares, as libsrd.map lists them.
Usage: symbols_test.py LIBSRD.SO LIBSRD.MAP SRD.H"""
import pathlib
import re
import subprocess
import sys


def exported(library):
    """Names and versions: srd_send@@SRD_0 in nm's words."""
    out = subprocess.run(["nm", "-D", "--defined-only", library], check=True, capture_output=True,
                         text=True).stdout
    return {line.split()[-1] for line in out.splitlines() if line.split()[-2] != "A"}


def main():
    library, map_file, header = sys.argv[1:]
    text = re.sub(r"#.*", "", pathlib.Path(map_file).read_text(encoding="utf-8"))
    listed = {f"{name}@@SRD_0" for name in re.findall(r"\b(srd_\w+);", text)}
    declared = {f"{name}@@SRD_0" for name in
                re.findall(r"SRD_API [^;]*?\b(srd_\w+)\(", pathlib.Path(header).read_text(encoding="utf-8"))}
    found = exported(library)
    failed = False
    for what, have, want in (("library exports", found, listed), ("libsrd.map lists", listed, declared)):
        for name in sorted(have - want):
            print(f"{what} {name}, which is not expected")
            failed = True
        for name in sorted(want - have):
            print(f"{what} no {name}")
            failed = True
    if not found:
        print(f"{library} exports nothing")
        failed = True
    print(f"{len(found)} symbols")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
