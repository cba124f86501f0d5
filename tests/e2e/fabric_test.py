#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fabric itself: what every other end-to-end test and every measurement relies on."""
import os
import pathlib
import re
import select
import shutil
import socket
import struct
import subprocess
import tempfile
import threading
import time

import harness
from harness import FABRIC, fabric, udp_socket

PORT = 9000
PAYLOAD = bytes(1000)
UDP_SEGMENT = 103
HASHES = ["kernel", "nft"] if os.path.exists("/proc/sys/net/ipv4/fib_multipath_hash_seed") else ["nft"]


def drain(receiver, quiet_s=0.2):
    """Number of datagrams that arrive until nothing comes for quiet_s."""
    count = 0
    while select.select([receiver], [], [], quiet_s)[0]:
        receiver.recv(65536)
        count += 1
    return count


def exchange(sender, receiver, count):
    """Sends `count` datagrams, slowly enough for a 1 Gb/s path; returns how many arrived."""
    arrived = 0
    for _ in range(0, count, 100):
        for _ in range(100):
            sender.sendto(PAYLOAD, receiver.getsockname()[:2])
        time.sleep(0.002)
        while select.select([receiver], [], [], 0)[0]:
            receiver.recv(65536)
            arrived += 1
    return arrived + drain(receiver)


def path_of_next(direction, send):
    """The path that one datagram takes, by the byte counters."""
    before = harness.path_bytes(direction)
    send()

    def grown():
        after = harness.path_bytes(direction)
        return [path for path in range(len(after)) if after[path] - before[path] >= len(PAYLOAD)]

    paths = harness.wait_until(grown, "a datagram seen on a path")
    if len(paths) != 1:
        raise AssertionError(f"one datagram was seen on paths {paths}")
    return paths[0]


def mapping(direction, family, ports):
    """Path of the connection (A, port) to (B, PORT), seen in that direction, for each port."""
    paths = []
    with udp_socket("B", family, PORT) as server:
        for port in ports:
            with udp_socket("A", family, port) as client:
                source, target = (client, server) if direction == "ab" else (server, client)
                paths.append(path_of_next(direction, lambda: source.sendto(PAYLOAD, target.getsockname()[:2])))
    return paths


class FabricTestCase(harness.FabricTest):
    def setUp(self):
        self.ports = iter(range(20000, 30000))  # each is tried once

    def client_on_path(self, path, family=4, direction="ab"):
        """A socket on A whose datagrams to (B, PORT), or those coming back, take that path."""
        for port in self.ports:
            if mapping(direction, family, [port]) == [path]:
                client = udp_socket("A", family, port)
                self.addCleanup(client.close)
                return client
        raise AssertionError(f"no port leads over path {path}")

    def server(self, family=4):
        server = udp_socket("B", family, PORT)
        self.addCleanup(server.close)
        return server


class Paths(FabricTestCase):
    def test_one_five_tuple_keeps_one_path(self):
        for hash_kind in HASHES:
            self.up(4, "none", FABRIC_HASH=hash_kind)
            for family in 4, 6:
                with self.subTest(hash=hash_kind, family=family):
                    with udp_socket("B", family, PORT) as server, udp_socket("A", family) as client:
                        before = harness.path_bytes("ab")
                        self.assertEqual(exchange(client, server, 3000), 3000)
                        grown = [b - a for a, b in zip(before, harness.path_bytes("ab"))]
                        self.assertGreaterEqual(max(grown), 3000 * len(PAYLOAD))
                        self.assertLess(sum(grown) - max(grown), 10 * len(PAYLOAD), grown)
            self.doCleanups()

    def test_ports_spread_over_all_paths(self):
        for hash_kind in HASHES:
            self.up(4, "none", FABRIC_HASH=hash_kind)
            for family in 4, 6:
                with self.subTest(hash=hash_kind, family=family):
                    paths = mapping("ab", family, range(30000, 30064))
                    for path in range(4):  # 64 fair draws: below 4 of 16 less than once in 10^4 runs
                        self.assertGreaterEqual(paths.count(path), 4, paths)
            self.doCleanups()

    def test_directions_are_independent(self):
        for hash_kind in HASHES:
            self.up(4, "none", FABRIC_HASH=hash_kind)
            for family in 4, 6:
                with self.subTest(hash=hash_kind, family=family):
                    ports = range(30000, 30128)
                    pairs = list(zip(mapping("ab", family, ports), mapping("ba", family, ports)))
                    # One way says nothing about the other: all 16 combinations occur (8 expected of each).
                    self.assertEqual(len(set(pairs)), 16, sorted(set(pairs)))
            self.doCleanups()

    def test_seed_chooses_the_mapping(self):
        for hash_kind in HASHES:
            seen = []
            for seed in 5, 5, 77:
                self.up(4, "none", FABRIC_HASH=hash_kind, FABRIC_SEED=str(seed))
                seen.append([mapping("ab", family, range(30000, 30032)) for family in (4, 6)])
                self.doCleanups()
            with self.subTest(hash=hash_kind):
                self.assertEqual(seen[0], seen[1])
                self.assertNotEqual(seen[0][0], seen[2][0])
                self.assertNotEqual(seen[0][1], seen[2][1])

    def test_path_of_agrees_with_the_counters(self):
        self.up(4, "none")
        for family in 4, 6:
            for path in 0, 3:
                client, server = self.client_on_path(path, family), udp_socket("B", family, PORT)
                stop = threading.Event()

                def send(client=client, server=server, stop=stop):
                    while not stop.wait(0.01):
                        client.sendto(PAYLOAD, server.getsockname()[:2])

                sender = threading.Thread(target=send)
                sender.start()
                try:
                    port = client.getsockname()[1]
                    self.assertEqual(fabric("path-of", "A", "udp", port, PORT).strip(), str(path))
                finally:
                    stop.set()
                    sender.join()
                    server.close()

    def test_path_of_says_when_there_is_no_traffic(self):
        self.up(2)
        with self.assertRaisesRegex(AssertionError, "exited with 1: .*no such packet within 0 s"):
            fabric("path-of", "A", "tcp", 1, 2, 0)


class Knobs(FabricTestCase):
    def test_loss_drops_its_share_of_one_path(self):
        self.up(2, "none")
        for family in 4, 6:
            hit, spared, server = self.client_on_path(0, family), self.client_on_path(1, family), self.server(family)
            fabric("loss", 0, 100)
            self.assertAlmostEqual(exchange(hit, server, 4000) / 4000, 0.9, delta=0.03)
            self.assertEqual(exchange(spared, server, 500), 500)
            fabric("loss", 0, 0)
            self.assertEqual(exchange(hit, server, 500), 500)
            server.close()

    def test_loss_one_way_spares_the_other(self):
        self.up(1, "none")
        client, server = self.client_on_path(0), self.server()
        fabric("loss", "all", 500, "ba")
        self.assertEqual(exchange(client, server, 500), 500)
        self.assertAlmostEqual(exchange(server, client, 2000) / 2000, 0.5, delta=0.07)
        self.assertAlmostEqual(harness.stat()[0]["lost"] / 2000, 0.5, delta=0.07)

    def test_ce_marks_its_share_of_ect_packets_only(self):
        self.up(1, "none")
        fabric("ce", 0, 300)
        for family in 4, 6:
            client, server = self.client_on_path(0, family), self.server(family)
            level, send_tos, receive_tos = ((socket.IPPROTO_IP, socket.IP_TOS, socket.IP_RECVTOS) if family == 4 else
                                            (socket.IPPROTO_IPV6, socket.IPV6_TCLASS, socket.IPV6_RECVTCLASS))
            server.setsockopt(level, receive_tos, 1)
            for ecn, share in (2, 0.3), (1, 0.3), (0, 0.0):
                client.setsockopt(level, send_tos, ecn)
                marked = 0
                for _ in range(3000):
                    client.sendto(PAYLOAD, server.getsockname()[:2])
                    _, control, _, _ = server.recvmsg(2000, 64)
                    marked += control[0][2][0] & 3 == 3
                self.assertAlmostEqual(marked / 3000, share, delta=0.06 if share else 0, msg=f"IPv{family} ECN {ecn}")
            server.close()
        self.assertGreater(harness.stat()[0]["ce"], 2000)

    def test_dup_sends_its_share_twice(self):
        self.up(1, "none")
        fabric("dup", 0, 250)
        for family in 4, 6:
            client, server = self.client_on_path(0, family), self.server(family)
            self.assertAlmostEqual(exchange(client, server, 3000) / 3000, 1.25, delta=0.06)
            self.assertAlmostEqual(exchange(server, client, 3000) / 3000, 1.25, delta=0.06)
            server.close()
        fabric("dup", "all", 1000)
        client, server = self.client_on_path(0), self.server()
        self.assertEqual(exchange(client, server, 500), 1000)
        server.close()
        fabric("dup", "all", 0)
        client, server = self.client_on_path(0), self.server()
        self.assertEqual(exchange(client, server, 500), 500)

    def test_black_hole_one_way_both_and_healed(self):
        self.up(2, "none")
        for family in 4, 6:
            # Both directions of this connection over path 0.
            client = next(udp_socket("A", family, port) for port in self.ports
                          if mapping("ab", family, [port]) == mapping("ba", family, [port]) == [0])
            spared, server = self.client_on_path(1, family), self.server(family)
            for direction, forward, back in ("ab", 0, 200), ("ba", 200, 0), ("both", 0, 0):
                with self.subTest(family=family, direction=direction):
                    fabric("fail", 0, direction)
                    self.assertEqual(exchange(client, server, 200), forward)
                    self.assertEqual(exchange(server, client, 200), back)
                    self.assertEqual(exchange(spared, server, 200), 200)
            self.assertGreaterEqual(harness.stat()[0]["holed"], 400)
            fabric("heal", 0)
            self.assertEqual(exchange(client, server, 200), 200)
            self.assertEqual(exchange(server, client, 200), 200)
            client.close()
            server.close()

    def test_rate_changes_and_the_queue_stays(self):
        queue_bytes = 100000
        self.up(1, "40mbit", 1500, queue_bytes)
        client, server = self.client_on_path(0), self.server()
        # A burst that arrives at once: the token bucket's 64 KB pass, the queue takes its bytes, the rest drops.
        expected = (65536 + queue_bytes) / (len(PAYLOAD) + 42)
        for rate in "40mbit", "10mbit", "40mbit":
            if rate != "40mbit" or harness.stat()[0]["queue_drops_ab"]:
                fabric("rate", 0, rate)
            time.sleep(0.2)
            start = time.monotonic()
            for _ in range(1000):
                client.sendto(PAYLOAD, server.getsockname()[:2])
            burst_s = time.monotonic() - start
            sent_meanwhile = burst_s * float(rate[:-4]) * 1e6 / 8 / (len(PAYLOAD) + 42)
            arrived = drain(server, 0.3)
            self.assertAlmostEqual(arrived - sent_meanwhile, expected, delta=0.25 * expected, msg=rate)

    def test_rate_limits_one_path(self):
        self.up(2, "100mbit")
        fabric("rate", 0, "20mbit")
        for path, rate in (0, 20e6), (1, 100e6):
            client, server = self.client_on_path(path), self.server()
            end = time.monotonic() + 1.0
            received = 0
            while time.monotonic() < end:
                for _ in range(50):
                    client.sendto(PAYLOAD, server.getsockname()[:2])
                received += drain(server, 0.001)
            received_bits = (received + drain(server)) * (len(PAYLOAD) + 42) * 8
            stored_bits = (65536 + 262144) * 8  # bucket and queue come on top of one second at the rate
            self.assertLess(received_bits, 1.2 * rate + stored_bits)
            self.assertGreater(received_bits, 0.8 * rate)
            server.close()

    def test_segment_cuts_bursts_before_the_spines(self):
        self.up(1, "none")
        client, server = self.client_on_path(0), self.server()
        client.setsockopt(socket.IPPROTO_UDP, UDP_SEGMENT, struct.pack("i", 1000))
        count = "table inet count { chain f { type filter hook forward priority 0; udp dport 9000 counter; }; }"
        for setting, packets in ("off", 1), ("on", 10):
            fabric("segment", setting)
            fabric("exec", "spine0", "nft", count)
            client.sendto(bytes(10000), server.getsockname()[:2])
            self.assertEqual(drain(server), 10)
            table = fabric("exec", "spine0", "nft", "list table inet count")
            fabric("exec", "spine0", "nft", "delete table inet count")
            self.assertIn(f"packets {packets} ", table, setting)

    def test_unknown_path_and_share_are_refused_with_a_text(self):
        self.up(2)
        for arguments, text in ((("loss", 2, 10), "must be 0 to 1 or all"), (("loss", 0, 1001), "must be 0 to 1000"),
                                (("fail", 0, "up"), "must be both, ab or ba"), (("up",), "there is one already"),
                                (("exec", "D", "true"), "no machine 'D'")):
            with self.assertRaisesRegex(AssertionError, f"exited with 2: fabric: .*{re.escape(text)}"):
                fabric(*arguments)


class Neighbour(FabricTestCase):
    def test_dead_neighbour_answers_nothing_until_alive(self):
        self.up(1)
        fabric("neighbour", "up", 2)
        for family, first, second in (4, "10.83.0.2", "10.83.0.3"), (6, "fd83::2", "fd83::3"):
            server = udp_socket("C", family, PORT)
            with harness.machine("C"):
                other = socket.socket(server.family, socket.SOCK_DGRAM)
            other.bind((second, PORT))
            with harness.machine("B"):
                client = socket.socket(server.family, socket.SOCK_DGRAM)

            def talk(client=client, server=server, other=other, first=first, second=second):
                for target in first, second:
                    client.sendto(PAYLOAD, (target, PORT))
                return drain(server) + drain(other)

            self.assertEqual(talk(), 2)
            fabric("neighbour", "dead")
            self.assertEqual(talk(), 0)
            neighbours = fabric("exec", "B", "ip", "neigh", "show", "dev", "n0")
            self.assertNotRegex(neighbours, r"lladdr")
            fabric("neighbour", "alive")
            harness.wait_until(lambda: talk() >= 2, "the neighbour answers again", 20)
            for made in client, server, other:
                made.close()


class Isolation(harness.FabricTest):
    """These start fabrics of their own, as a user does."""

    def run_fabric(self, script, *arguments, **options):
        command = [FABRIC, "run", "--", "bash", "-ec", script, FABRIC, *arguments]
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, **options)
        self.addCleanup(process.stderr.close)
        self.addCleanup(process.stdout.close)
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        return process

    @staticmethod
    def processes_with(argument, program=""):
        found = []
        for entry in pathlib.Path("/proc").glob("[0-9]*"):
            try:
                arguments = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                if argument in arguments and arguments[0].endswith(program):
                    found.append(int(entry.name))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                continue
        return found

    def check_gone_after(self, end, seconds):
        script = '"$0" up 2; "$0" exec A sleep "$1" & setsid sleep "$1" & echo up; sleep "$1"'
        process = self.run_fabric(script, seconds)
        self.assertEqual(process.stdout.readline(), "up\n")
        harness.wait_until(lambda: len(self.processes_with(seconds, "sleep")) == 3, "three sleeping processes")
        end(process)
        process.wait(10)
        harness.wait_until(lambda: not self.processes_with(seconds), "all processes of the fabric are gone")
        # A namespace lives while a process, a mount or a file of a process refers to it: the processes are
        # gone, and no mount of ours is visible here.
        self.assertNotIn("srdA", pathlib.Path("/proc/self/mounts").read_text(encoding="utf-8"))

    def test_nothing_is_left_after_sigkill(self):
        self.check_gone_after(lambda process: process.kill(), "1234567")

    def test_nothing_is_left_after_sigterm(self):
        self.check_gone_after(lambda process: process.terminate(), "1234568")

    def test_exit_code_and_output_pass_through(self):
        process = self.run_fabric("cat; echo error >&2; exit 7", stdin=subprocess.PIPE)
        out, error = process.communicate("hello", timeout=20)
        self.assertEqual((process.returncode, out, error), (7, "hello", "error\n"))

    def test_two_fabrics_at_once_do_not_see_each_other(self):
        script = ('"$0" up "$1" 500mbit; echo up; read -r go; "$0" stat | wc -l; ip netns list | wc -l;'
                  ' "$0" exec A bash -c "echo x >/dev/udp/10.81.2.2/7"; echo sent')
        fabrics = [self.run_fabric(script, str(paths), stdin=subprocess.PIPE) for paths in (2, 3)]
        for process in fabrics:
            self.assertEqual(process.stdout.readline(), "up\n")
        for paths, process in zip((2, 3), fabrics):
            out, error = process.communicate("go\n", timeout=20)
            self.assertEqual(out.split(), [str(paths), str(paths + 4), "sent"], error)
            self.assertEqual(process.returncode, 0, error)

    def test_works_without_root(self):
        if os.environ[harness.INSIDE] != "0":
            return  # then every test of this file is run without root
        with tempfile.TemporaryDirectory() as folder:  # the checkout itself may be out of a user's reach
            os.chmod(folder, 0o755)
            copy = shutil.copy(FABRIC, folder)
            done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", copy, "check"],
                                  capture_output=True, text=True, timeout=60, check=False, cwd="/")
        if done.returncode == harness.SKIPPED and "user namespaces" in done.stderr:
            self.skipTest(done.stderr.strip())
        self.assertEqual(done.returncode, 0, done.stderr)

    def test_refusal_says_why_and_exits_with_77(self):
        script = ('echo 0 >/proc/sys/user/max_user_namespaces;'  # of the new user namespace only
                  ' exec setpriv --bounding-set=-sys_admin "$0" run -- true')
        done = subprocess.run(["unshare", "--user", "--map-root-user", "bash", "-c", script, FABRIC],
                              capture_output=True, text=True, timeout=20, check=False)
        if "unshare: " in done.stderr and "fabric: " not in done.stderr:
            self.skipTest(f"no user namespaces here: {done.stderr.strip()}")
        self.assertEqual(done.returncode, harness.SKIPPED, done.stderr)
        self.assertRegex(done.stderr, "refuses private namespaces .*--privileged.*max_user_namespaces")

    def test_outside_of_private_namespaces_nothing_is_touched(self):
        done = subprocess.run(["unshare", "--mount", "bash", "-c", 'umount /run && exec "$0" up', FABRIC],
                              capture_output=True, text=True, timeout=20, check=False)
        self.assertEqual(done.returncode, 2, done.stderr)
        self.assertIn("fabric run -- COMMAND", done.stderr)


if __name__ == "__main__":
    harness.main()
