#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures OpenSRD beside kernel TCP, MPTCP and sockperf, in interleaved runs on this machine.

Each case runs in private namespaces (tests/fabric) that end with it; where those are refused, the loopback
cases run without. docs/PERFORMANCE.md says what the figures mean and keeps them.
"""
import argparse
import contextlib
import json
import os
import pathlib
import shlex
import signal
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
from comparison import machine, report  # noqa: E402  pylint: disable=wrong-import-position
from comparison.cases import CASES  # noqa: E402  pylint: disable=wrong-import-position
from comparison.place import ROOT, harness  # noqa: E402  pylint: disable=wrong-import-position
from comparison.process import end_with_parent  # noqa: E402  pylint: disable=wrong-import-position
from comparison.result import Failure, Result, Unavailable, from_json  # noqa: E402  pylint: disable=wrong-import-position
from comparison.session import Session  # noqa: E402  pylint: disable=wrong-import-position
from comparison.tools import Tools  # noqa: E402  pylint: disable=wrong-import-position

REACHED, MISSED, USAGE, REFUSED = 0, 1, 2, 77
EXIT_CODES = """exit code: 0 everything reached (with --quick: everything ran), 1 something missed or failed,
2 usage, 77 nothing could be measured here; 130 after Ctrl-C"""


def parse_arguments():
    rows = "\n".join(f"  {name:<26} {case.title} ({case.runs} {case.unit})" for name, case in CASES.items())
    parser = argparse.ArgumentParser(description=__doc__, epilog=f"cases:\n{rows}\n\n{EXIT_CODES}",
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+", metavar="CASE", choices=[*CASES, "all"], help="see below; or all")
    parser.add_argument("--runs", type=int, help="how often; the default is beside each case below")
    parser.add_argument("--json", type=pathlib.Path, metavar="FILE", help="write all figures there")
    parser.add_argument("--markdown", type=pathlib.Path, metavar="FILE",
                        help="write the section for docs/PERFORMANCE.md there, not to standard output")
    parser.add_argument("--quick", action="store_true", help="one short run of each: is everything there?")
    parser.add_argument("--build", type=pathlib.Path, metavar="DIR", help="build folder (build or build/release)")
    parser.add_argument("--inside", type=pathlib.Path, help=argparse.SUPPRESS)  # one case; where its result goes
    arguments = parser.parse_args()
    if arguments.runs is not None and arguments.runs < 1:
        parser.error("--runs must be at least 1")
    arguments.cases = list(CASES) if "all" in arguments.cases else list(dict.fromkeys(arguments.cases))
    return arguments


def find_build(arguments):
    """The build folder, which must be an optimised one for figures to mean anything."""
    choices = [arguments.build] if arguments.build else [ROOT / "build", ROOT / "build" / "release"]
    build = next((folder for folder in choices if (folder / "CMakeCache.txt").is_file()), None)
    if build is None:
        raise Failure(f"{' and '.join(map(str, choices))}: no build folder. "
                      "Make one: cmake -B build && cmake --build build -j$(nproc)")
    cache = (build / "CMakeCache.txt").read_text(encoding="utf-8").splitlines()
    values = dict(line.split("=", 1) for line in cache if "=" in line and not line.startswith(("#", "//")))
    kind, sanitize = values.get("CMAKE_BUILD_TYPE:STRING"), values.get("SRD_SANITIZE:STRING")
    if (kind not in ("Release", "RelWithDebInfo") or sanitize) and not arguments.quick:
        raise Failure(f"{build} is a build of type {kind or 'none'}{', sanitized' if sanitize else ''}; measure an "
                      "optimised one: cmake -B build -DCMAKE_BUILD_TYPE=Release, or name another: --build DIR")
    return build.resolve()


def measure_here(name, arguments):
    """Measures one case in this process, and writes its result for the process outside."""
    case = CASES[name]
    tools = Tools(find_build(arguments))
    result = Result(name, case.title)
    case.measure(Session(name, tools, arguments.runs or case.runs, arguments.quick), result)
    result.notes += tools.incidents
    arguments.inside.write_text(json.dumps(result.to_json()), encoding="utf-8")


def measure(name, build, arguments, in_namespaces):
    """Measures one case in a process of its own, in fresh namespaces if there are any."""
    with tempfile.TemporaryDirectory(prefix="compare-") as folder:
        file = pathlib.Path(folder, "result.json")
        command = [sys.executable, os.path.realpath(__file__), name, "--inside", str(file), "--build", str(build)]
        command += ["--quick"] if arguments.quick else []
        command += ["--runs", str(arguments.runs)] if arguments.runs else []
        if in_namespaces:
            command = [harness.FABRIC, "run", "--", *command]
        # In this process group, so that Ctrl-C reaches it, too. SIGTERM makes both kinds end all that they started.
        with subprocess.Popen(command, preexec_fn=lambda: end_with_parent(signal.SIGTERM)) as child:
            try:
                code = child.wait()
            except BaseException:
                child.send_signal(signal.SIGTERM)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    child.wait(10)
                child.kill()
                raise
        if code == REFUSED:
            raise Unavailable(f"{name} cannot be measured here, see above")
        if code != 0:
            raise Failure(f"{name} was not measured, see above (exit code {code})")
        return from_json(json.loads(file.read_text(encoding="utf-8")))


def why_no_namespaces():
    """None, or the reason why this machine refuses private namespaces."""
    check = subprocess.run([harness.FABRIC, "check"], capture_output=True, text=True, check=False)
    if check.returncode == 0:
        return None
    if check.returncode == REFUSED:
        return check.stderr.strip()
    raise Failure(f"{harness.FABRIC} check failed: {check.stderr.strip()}")


def measure_all(arguments):
    build = find_build(arguments)
    why_not = why_no_namespaces()
    results, failed = [], False
    for name in arguments.cases:
        if why_not is not None and CASES[name].needs_fabric:
            print(f"SKIP: {name}: {why_not}")
            continue
        try:
            result = measure(name, build, arguments, why_not is None)
        except Unavailable:  # it has said why
            continue
        except Failure as failure:
            print(f"compare.py: {failure}", file=sys.stderr)
            failed = True
            continue
        print(report.human(result), end="\n\n", flush=True)
        results.append(result)
    if results:
        write(results, arguments)
    if failed:
        return MISSED
    if not results:
        return REFUSED
    all_passed = all(check.passed for result in results for check in result.checks)
    return REACHED if all_passed or arguments.quick else MISSED


def write(results, arguments):
    where = machine.describe()
    command = shlex.join(["perf/compare.py", *sys.argv[1:]])
    text = report.markdown(results, where, command, arguments.quick)
    if arguments.markdown:
        arguments.markdown.write_text(text, encoding="utf-8")
    else:
        print(f"For docs/PERFORMANCE.md:\n\n{text}")
    if arguments.json:
        everything = {"command": command, "machine": where, "quick": arguments.quick,
                      "cases": [result.to_json() for result in results]}
        arguments.json.write_text(json.dumps(everything, indent=2) + "\n", encoding="utf-8")
    if arguments.quick:
        print(report.NOT_A_MEASUREMENT)


def main():
    arguments = parse_arguments()
    for number in signal.SIGINT, signal.SIGTERM:
        signal.signal(number, signal.default_int_handler)  # both end it in order
    try:
        if arguments.inside:
            measure_here(arguments.cases[0], arguments)
            return REACHED
        return measure_all(arguments)
    except Unavailable as unavailable:
        print(f"SKIP: {arguments.cases[0]}: {unavailable}")
        return REFUSED
    except (Failure, AssertionError) as failure:  # AssertionError: how the fabric's commands fail
        print(f"compare.py: {failure}", file=sys.stderr)
        return MISSED
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
