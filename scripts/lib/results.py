#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Adds up the results of scripts/test.sh.

Reads a folder with NAME.xml (ctest's JUnit report of configuration NAME) and NAME.code (ctest's exit
code), or NAME.failed (a text: the configuration could not be built; counts as one failure), or
NAME.skipped (a text: why it was not tried; counts as one skip). Prints the skipped tests with their
reasons, the failed tests, and as the last line "N passed, N failed, N skipped". Exit code 1 if
something failed or nothing passed.
"""
import pathlib
import re
import sys
import xml.etree.ElementTree as ElementTree

# How tests say why they skip: GTEST_SKIP prints "file:line: Skipped" and the reason on the next
# line; scripts print "SKIP: reason" and exit with 77.
REASONS = (
    re.compile(r": Skipped\n+(.+)"),
    re.compile(r"^SKIP(?:PED)?: *(.+)", re.MULTILINE),
)


def is_skipped(case):
    """True if the test itself chose to skip; "not run" for any other reason is a failure."""
    skipped = case.find("skipped")
    return skipped is not None and skipped.get("message", "").startswith("SKIP_")


def skip_reason(case):
    output = case.findtext("system-out") or ""
    for pattern in REASONS:
        match = pattern.search(output)
        if match:
            return match.group(1).strip()
    return "no reason printed"


def main():
    folder = pathlib.Path(sys.argv[1])
    passed, failed, skipped = 0, [], []
    for path in sorted(folder.glob("*.failed")):
        failed.append(f"{path.stem}: {path.read_text().strip()}")
    for path in sorted(folder.glob("*.skipped")):
        skipped.append((path.stem, path.read_text().strip()))
    for path in sorted(folder.glob("*.code")):
        failed_before = len(failed)
        report = path.with_suffix(".xml")
        cases = ElementTree.parse(report).getroot().iter("testcase") if report.exists() else []
        for case in cases:
            name = f"{path.stem}: {case.get('name')}"
            if case.get("status") == "run":
                passed += 1
            elif is_skipped(case):
                skipped.append((name, skip_reason(case)))
            else:
                failed.append(name)
        code = path.read_text().strip()
        if code != "0" and len(failed) == failed_before:
            failed.append(f"{path.stem}: ctest exited with {code} and named no failed test")

    if skipped:
        print("Skipped:")
        for name, reason in skipped:
            print(f"  {name}: {reason}")
    if failed:
        print("Failed:")
        for name in failed:
            print(f"  {name}")
    if passed == 0 and not failed:
        print("No test ran.")
    print(f"{passed} passed, {len(failed)} failed, {len(skipped)} skipped")
    return 1 if failed or passed == 0 else 0


if __name__ == "__main__":
    sys.exit(main())
