#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks of the source text: style.py CHECK [ARGUMENT...]

  layers             who includes whom (the table in CONTRIBUTING.md)
  sans-io OBJECT...  the protocol objects use no clock, socket, thread, environment, stdio or exception
  spdx               each file names its licence in its first lines
  paths              no path of somebody's machine
  links              links inside the Markdown files lead somewhere
  snippets           code in the Markdown files is the code of the example that it names
  format             clang-format 14
  shell              shellcheck
  tidy BUILD         clang-tidy 14 with the compile commands in BUILD: the library; with SRD_TEST_FULL in
                     the environment also tools, examples, tests and benchmarks (many minutes)

Exit code 0: fine. 1: findings, each as file:line: text. 77: cannot run here, the reason is printed.
"""
import concurrent.futures
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[2]
SKIP = 77

# ---- which files ------------------------------------------------------------------------------


def project_files():
    """Files under version control, or, in a source archive, all files outside build folders."""
    if (ROOT / ".git").exists():
        out = subprocess.run(
            ["git", "-c", f"safe.directory={ROOT}", "ls-files", "--cached", "--others",
             "--exclude-standard", "-z"],
            cwd=ROOT, check=True, capture_output=True, text=True).stdout
        names = [name for name in out.split("\0") if name]
    else:
        names = [str(path.relative_to(ROOT)) for path in ROOT.rglob("*")
                 if not path.relative_to(ROOT).parts[0].startswith("build")]
    return sorted(name for name in names if (ROOT / name).is_file())


def sources(suffixes=(".h", ".hpp", ".c", ".cpp")):
    return [name for name in project_files() if name.endswith(suffixes)]


def text_of(name):
    return (ROOT / name).read_text(encoding="utf-8")


def numbered_lines(name):
    return enumerate(text_of(name).splitlines(), start=1)


# ---- layers -----------------------------------------------------------------------------------

# What the lower layers may know of the public headers.
PROTOCOL_HEADERS = {f"include/srd/{name}" for name in
                    ("datagram.hpp", "error.hpp", "result.hpp", "address.hpp", "srd.h")}
DRIVER_HEADERS = PROTOCOL_HEADERS | {"include/srd/driver.hpp"}
PUBLIC = {"include/srd/"}

# folder (or file): what it may include, as folders (with a trailing slash) and files. The longest
# matching row counts. The same table, for people, is in CONTRIBUTING.md.
LAYERS = {
    "include/srd/": PUBLIC,
    "lib/base/": {"lib/base/"} | PROTOCOL_HEADERS,
    "lib/srd/wire/": {"lib/srd/wire/", "lib/base/"} | PROTOCOL_HEADERS,
    "lib/srd/core/": {"lib/srd/core/", "lib/srd/wire/", "lib/base/", "include/srd/driver.hpp"}
                     | PROTOCOL_HEADERS,
    "lib/srd/runtime/": {"lib/srd/", "lib/base/"} | PUBLIC,
    "lib/srd/runtime/drivers.cpp": {"lib/"} | PUBLIC,
    "lib/sock/": {"lib/sock/", "lib/base/"} | DRIVER_HEADERS,
    "lib/udp/": {"lib/udp/", "lib/sock/", "lib/base/"} | DRIVER_HEADERS,
    "lib/sim/": {"lib/sim/", "lib/srd/", "lib/base/"} | PUBLIC,
    "apps/": {"apps/"} | PUBLIC,
    "apps/srd_sim.cpp": {"lib/sim/"} | PUBLIC,
    "examples/": {"examples/"} | PUBLIC,
    "tests/api/": {"tests/api/", "tests/support/"} | PUBLIC,
    "tests/e2e/": {"tests/e2e/", "tests/support/"} | PUBLIC,
    "tests/install/": {"tests/install/"} | PUBLIC,
    "tests/tools/": {"tests/tools/", "apps/"} | PUBLIC,
    "tests/": {"tests/", "lib/"} | PUBLIC,
    "perf/": {"perf/", "lib/"} | PUBLIC,
}
# Third-party headers, and who may include them.
THIRD_PARTY = {
    "boost/": ("include/srd/asio.hpp", "examples/", "tests/api/", "tests/install/"),
    "gtest/": ("tests/",),
    "gmock/": ("tests/",),
    "benchmark/": ("perf/",),
    "CLI/": ("apps/",),
    "fmt/": ("apps/",),
    "nlohmann/": ("apps/", "tests/tools/"),
}
# Not on any data path (CONTRIBUTING.md), so not in the library at all.
BANNED_HEADERS = {"iostream", "sstream", "fstream", "regex"}

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')


def resolve_include(includer, name):
    """The project file that an include names, or None."""
    own_root = includer.split("/")[0]
    for base in ("lib", "include", "apps", own_root, ""):
        candidate = os.path.normpath(os.path.join(base, name))
        if (ROOT / candidate).is_file():
            return candidate
    return None


def is_in(name, places):
    return any(name.startswith(place) if place.endswith("/") else name == place
               for place in places)


def check_layers():
    findings = []
    for name in sources():
        rows = [row for row in LAYERS if is_in(name, (row,))]
        if not rows:
            findings.append(f"{name}:1: no layer; add its folder to tests/style/style.py and CONTRIBUTING.md")
            continue
        row = max(rows, key=len)
        for number, line in numbered_lines(name):
            match = INCLUDE.match(line)
            if not match:
                continue
            where, quote, header = f"{name}:{number}", match.group(1), match.group(2)
            if name.startswith(("lib/", "include/")) and header in BANNED_HEADERS:
                findings.append(f"{where}: <{header}> is not used in the library")
            for prefix, places in THIRD_PARTY.items():
                if header.startswith(prefix) and not is_in(name, places):
                    findings.append(f"{where}: {prefix} may be included only in {', '.join(places)}")
            target = resolve_include(name, header)
            if target is not None and quote == '"' and not is_in(target, LAYERS[row]):
                findings.append(f"{where}: {row} may not include {target}")
            elif target is not None and quote == "<" and not name.startswith(("tests/install/",)):
                findings.append(f"{where}: own headers are included with quotes")
            elif target is None and quote == '"':
                findings.append(f"{where}: \"{header}\" starts neither at lib/, at include/ nor at apps/")
    return findings


# ---- sans-io ----------------------------------------------------------------------------------

# What the protocol must not call: exact names, and prefixes that end in *.
FORBIDDEN_SYMBOLS = {
    "a socket or file": "socket bind connect listen accept accept4 send sendto sendmsg sendmmsg recv "
                        "recvfrom recvmsg recvmmsg setsockopt getsockopt poll ppoll select epoll_* "
                        "eventfd ioctl fcntl read write pread pwrite open open64 openat close mmap "
                        "mmap64 munmap syscall",
    "a clock": "time gettimeofday clock clock_* nanosleep usleep sleep timerfd_* _ZNSt6chrono*",
    "the environment": "getenv secure_getenv setenv environ sysconf uname",
    "a random source": "rand rand_r random random_r srand srandom *rand48 getrandom getentropy "
                       "arc4random* _ZNSt13random_device*",
    "a thread or lock": "pthread_* thrd_* mtx_* sem_* _ZNSt6thread* _ZNSt18condition_variable* "
                        "__cxa_guard_*",
    "stdio or iostream": "printf fprintf vprintf vfprintf snprintf vsnprintf sprintf vsprintf "
                         "__*printf_chk puts fputs fputc putc putchar fwrite fopen fopen64 fclose "
                         "fflush perror stdout stderr stdin _ZNSo* _ZNSi* _ZSt4cout _ZSt4cerr",
    "exceptions": "__cxa_throw __cxa_allocate_exception __cxa_begin_catch",
}


def check_sans_io(objects):
    if shutil.which("nm") is None:
        return skip("nm (binutils) is not installed")
    if not objects:
        return ["no object file was given"]
    rules = [(re.compile("".join(".*" if c == "*" else re.escape(c) for c in word) + r"(@.*)?"), what)
             for what, words in FORBIDDEN_SYMBOLS.items() for word in words.split()]
    findings = []
    for path in objects:
        out = subprocess.run(["nm", "-u", path], check=True, capture_output=True, text=True).stdout
        for line in out.splitlines():
            symbol = line.split()[-1]
            for pattern, what in rules:
                if pattern.fullmatch(symbol):
                    findings.append(f"{os.path.basename(path)}: uses {what}: {symbol}")
    return findings


# ---- text -------------------------------------------------------------------------------------

SPDX = "SPDX-License-Identifier: Apache-2.0"
# Formats without comments, data made by tools, and the licence itself.
NO_SPDX_SUFFIXES = (".json", ".hex", ".bin", ".txt", ".csv", ".pcap", ".svg", ".png")
NO_SPDX = {"LICENSE"}


def check_spdx():
    findings = []
    for name in project_files():
        if name in NO_SPDX or "/corpus/" in name:
            continue
        if name.endswith(NO_SPDX_SUFFIXES) and not name.endswith("CMakeLists.txt"):
            continue
        head = "\n".join(text_of(name).splitlines()[:3])
        if SPDX not in head:
            findings.append(f"{name}:1: no '{SPDX}' in the first three lines")
    return findings


# Written in pieces, so that this file does not find itself.
MACHINE_PATHS = re.compile("|".join(("/" + "work/", "/" + "root/", "/" + "home/[a-z]", "/" + "Users/")))


def check_paths():
    findings = []
    for name in project_files():
        if "/corpus/" in name or name.endswith((".bin", ".png", ".pcap")):
            continue
        for number, line in numbered_lines(name):
            if MACHINE_PATHS.search(line):
                findings.append(f"{name}:{number}: a path of one machine: {line.strip()}")
    return findings


# ---- Markdown ---------------------------------------------------------------------------------

LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)|!\[[^\]]*\]\(([^)\s]+)\)")
FENCE = re.compile(r"^\s*```")


def prose_lines(name):
    """Lines outside fenced code."""
    fenced = False
    for number, line in numbered_lines(name):
        if FENCE.match(line):
            fenced = not fenced
        elif not fenced:
            yield number, line


def anchors_of(name):
    """Anchors of the headings, as the usual renderers make them."""
    anchors = set()
    for _, line in prose_lines(name):
        match = re.match(r"#+\s+(.*)", line)
        if match:
            title = re.sub(r"[`*_]", "", match.group(1)).strip().lower()
            anchors.add(re.sub(r"[^\w\- ]", "", title).replace(" ", "-"))
    return anchors


def check_links():
    findings = []
    for name in (name for name in project_files() if name.endswith(".md")):
        for number, line in prose_lines(name):
            for match in LINK.finditer(re.sub(r"`[^`]*`", "", line)):
                target = match.group(1) or match.group(2)
                if re.match(r"[a-z]+:", target):
                    continue
                path, _, anchor = target.partition("#")
                file = os.path.normpath(os.path.join(os.path.dirname(name), path)) if path else name
                if not (ROOT / file).exists():
                    findings.append(f"{name}:{number}: link to {target}: no such file")
                elif anchor and file.endswith(".md") and anchor not in anchors_of(file):
                    findings.append(f"{name}:{number}: link to {target}: no such heading")
    return findings


# <!-- include: examples/hello.c --> stands directly above the fenced copy.
SNIPPET = re.compile(r"<!-- include: (\S+) -->\n```\w*\n(.*?)```\n", re.DOTALL)
README_SNIPPET_LINES_MAX = 15


def without_banner(text):
    """The code without the licence and description comments at its top."""
    while True:
        stripped = re.sub(r"\A(//[^\n]*\n|/\*.*?\*/\n|\s*\n)", "", text, count=1, flags=re.DOTALL)
        if stripped == text:
            return text
        text = stripped


def check_snippets():
    findings, found = [], set()
    for name in (name for name in project_files() if name.endswith(".md")):
        for match in SNIPPET.finditer(text_of(name)):
            example, copy = match.groups()
            found.add(example)
            if not (ROOT / example).is_file():
                findings.append(f"{name}:1: includes {example}, which does not exist")
                continue
            if copy != without_banner(text_of(example)):
                findings.append(f"{name}:1: the copy of {example} differs from the file")
            if name == "README.md" and len(copy.splitlines()) > README_SNIPPET_LINES_MAX:
                findings.append(f"{name}:1: {example} has more than {README_SNIPPET_LINES_MAX} lines")
    for example in ("examples/hello.c", "examples/hello.cpp"):
        if example not in found:
            findings.append(f"README.md:1: does not show {example}")
    return findings


# ---- other people's tools ---------------------------------------------------------------------


def find_tool(*names):
    return next((tool for tool in map(shutil.which, names) if tool), None)


def check_format():
    tool = find_tool("clang-format-14")
    if tool is None:
        return skip("clang-format-14 is not installed")
    out = subprocess.run([tool, "--dry-run", *sources()], cwd=ROOT, capture_output=True, text=True)
    where = sorted({":".join(line.split(":")[:2]) for line in out.stderr.splitlines()
                    if "-Wclang-format-violations" in line})
    if out.returncode != 0 and not where:
        return [out.stderr]
    return [f"{place}: not as clang-format-14 writes it (run clang-format-14 -i)" for place in where]


def check_shell():
    tool = find_tool("shellcheck")
    if tool is None:
        return skip("shellcheck is not installed")
    scripts = [name for name in project_files()
               if name.endswith(".sh")
               or ("." not in os.path.basename(name) and re.match(rb"#!.*\b(ba|da)?sh\b",
                                                                   (ROOT / name).read_bytes()[:64]))]
    out = subprocess.run([tool, "-x", "-f", "gcc", *scripts], cwd=ROOT, capture_output=True, text=True)
    return out.stdout.splitlines() + out.stderr.splitlines()


def check_tidy(build):
    tool = find_tool("clang-tidy-14")
    if tool is None:
        return skip("clang-tidy-14 is not installed")
    folders = ("lib/",)
    if os.environ.get("SRD_TEST_FULL"):
        folders += ("apps/", "examples/", "tests/", "perf/")
    commands = json.loads(pathlib.Path(build, "compile_commands.json").read_text())
    files = sorted({os.path.relpath(entry["file"], ROOT) for entry in commands})
    # The checks are for C++. The hello example is written for the page: as short as it can be.
    files = [name for name in files if name.startswith(folders) and name.endswith(".cpp")
             and name != "examples/hello.cpp"]
    if not files:
        return [f"{build}/compile_commands.json names no file of {', '.join(folders)}"]

    def tidy(name):
        out = subprocess.run([tool, "--quiet", "-p", build, name], cwd=ROOT, capture_output=True, text=True)
        lines = [line for line in out.stdout.splitlines() if ": warning: " in line or ": error: " in line]
        return lines or ([f"{name}: {out.stderr.strip()}"] if out.returncode != 0 else [])

    with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
        findings = {line.replace(f"{ROOT}/", "") for lines in pool.map(tidy, files) for line in lines}
    return sorted(findings)


# ---- main -------------------------------------------------------------------------------------


def skip(reason):
    print(f"SKIP: {reason}")
    sys.exit(SKIP)


CHECKS = {
    "layers": check_layers, "spdx": check_spdx, "paths": check_paths, "links": check_links,
    "snippets": check_snippets, "format": check_format, "shell": check_shell,
}


def main(arguments):
    if len(arguments) == 1 and arguments[0] in CHECKS:
        findings = CHECKS[arguments[0]]()
    elif arguments and arguments[0] == "sans-io":
        findings = check_sans_io(arguments[1:])
    elif len(arguments) == 2 and arguments[0] == "tidy":
        findings = check_tidy(arguments[1])
    else:
        print(__doc__)
        return 2
    for finding in findings:
        print(finding)
    print(f"{len(findings)} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
