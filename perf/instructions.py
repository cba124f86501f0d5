#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Instructions per datagram of the protocol core, against a stored baseline.

  perf/instructions.py BUILD            compare with perf/baseline.json; exit code 1 if it costs more
  perf/instructions.py BUILD --record   store what is measured for this compiler

BUILD is an optimised build folder. Counts come from callgrind, so they are the same on every run and
do not depend on what else the machine does. They do depend on the compiler: the baseline has an entry
for each; without one for this compiler the comparison is skipped (exit code 77), as without valgrind.
A case may cost up to 2 % more than its baseline; where it costs over 2 % less, record it again, so that
the gain is kept.
"""
import argparse
import json
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

SKIP = 77
TOLERANCE = 0.02
BASELINE = pathlib.Path(__file__).with_name("baseline.json")
# name: (bytes of a message, messages)
CASES = {
    "message_64": (64, 50_000),
    "message_1408": (1408, 10_000),
    "message_65536": (65536, 250),
}
SIDES = {"sender": "turn_sender", "receiver": "turn_receiver"}


def count(program, message_bytes, messages):
    """Runs one case; (compiler, instructions per datagram of each side)."""
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "callgrind.out")
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", f"--callgrind-out-file={out}", "--toggle-collect=measure*",
             program, str(message_bytes), str(messages)], capture_output=True, text=True)
        if run.returncode != 0:
            sys.exit(f"{program} failed under callgrind:\n{run.stdout}{run.stderr}")
        done = json.loads(run.stdout)
        table = subprocess.run(
            ["callgrind_annotate", "--inclusive=yes", "--threshold=100", str(out)],
            capture_output=True, text=True, check=True).stdout
    cost = {}
    for side, function in SIDES.items():
        match = re.search(rf"^\s*([\d,]+) .*::{function}\(", table, re.MULTILINE)
        if match is None:
            sys.exit(f"callgrind saw no {function}() in {program}")
        datagrams = done["sent_datagrams" if side == "sender" else "taken_datagrams"]
        cost[side] = round(int(match.group(1).replace(",", "")) / datagrams, 1)
    return done["compiler"], cost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("build", type=pathlib.Path)
    parser.add_argument("--record", action="store_true")
    options = parser.parse_args()
    if shutil.which("valgrind") is None:
        print("SKIP: valgrind is not installed")
        return SKIP
    program = options.build / "perf" / "instr_core"
    if not program.exists():
        print(f"{program} does not exist; build target instr_core first")
        return 1

    baselines = json.loads(BASELINE.read_text()) if BASELINE.exists() else {}
    compiler, measured = None, {}
    for case, (message_bytes, messages) in CASES.items():
        compiler, measured[case] = count(program, message_bytes, messages)
    baseline = baselines.get(compiler)

    failed = False
    print(f"instructions per datagram, {compiler}")
    for case, sides in measured.items():
        for side, cost in sides.items():
            line = f"  {case:14} {side:9} {cost:9.1f}"
            if baseline is not None and not options.record:
                before = baseline[case][side]
                change = cost / before - 1
                line += f"  baseline {before:9.1f}  {change:+.1%}"
                if change > TOLERANCE:
                    line += "  TOO MUCH"
                    failed = True
                elif change < -TOLERANCE:
                    line += "  better: record it"
            print(line)
    if options.record:
        baselines[compiler] = measured
        BASELINE.write_text(json.dumps(baselines, indent=2, sort_keys=True) + "\n")
        print(f"recorded in {BASELINE}")
        return 0
    if baseline is None:
        print(f"SKIP: no baseline for {compiler}; perf/instructions.py {options.build} --record makes one")
        return SKIP
    if failed:
        print("If the cost is worth it, say why in the commit that records it: "
              f"perf/instructions.py {options.build} --record")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
