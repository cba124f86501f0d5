#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Runs an example echo server and asks it with a client; the server must end cleanly on
SIGTERM. Usage: examples_test.py SERVER CLIENT"""
import select
import subprocess
import sys

PATIENCE_S = 20


def first_line(process):
    ready, _, _ = select.select([process.stdout], [], [], PATIENCE_S)
    return process.stdout.readline().strip() if ready else ""


def ask(client, address, words):
    answer = subprocess.run([client, address, *words], capture_output=True, text=True,
                            timeout=PATIENCE_S, check=False)
    if answer.returncode != 0 or answer.stdout.splitlines() != words:
        print(f"client ended with {answer.returncode}: {answer.stdout!r} {answer.stderr!r}")
        return False
    return True


def main():
    server_program, client = sys.argv[1:]
    server = subprocess.Popen([server_program, "127.0.0.1:0"], stdout=subprocess.PIPE, text=True)
    try:
        line = first_line(server)
        prefix = "listening on "
        if not line.startswith(prefix):
            print(f"the server said {line!r}")
            return 1
        address = line[len(prefix):]
        # The second client is another peer; a long word takes several datagrams.
        right = ask(client, address, ["one", "two", "three"]) and ask(client, address, ["x" * 100000])
        server.terminate()
        code = server.wait(PATIENCE_S)
        if code != 0:
            print(f"the server ended with {code}")
        return 0 if right and code == 0 else 1
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    sys.exit(main())
