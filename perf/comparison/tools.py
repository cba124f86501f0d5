# SPDX-License-Identifier: Apache-2.0
"""The programs that are compared: how each is run, and what is read from what it prints."""
import contextlib
import dataclasses
import json
import pathlib
import re
import subprocess
import tempfile
import time

from comparison import place as places
from comparison.process import Hung, Process, need
from comparison.result import Failure

SRD_PORT = 5211
TCP_PORT = 5201  # of iperf3; several processes take the following ones
EXCHANGE_PORT = 5221
SOCKPERF_PORT = 11111
PATIENCE_S = 15  # beyond the time that a run should take
START_MARGIN_S = 2  # within which many processes must have started


@dataclasses.dataclass
class Bulk:
    """One run of bulk data."""
    bits_per_s: float  # received within the measured time
    cpu_s_per_gb: float  # both ends, over the whole run
    report: dict


class Pair:
    """A server and its client. Within the block the server runs, and the client from start() on."""

    def __init__(self, place, server, client, protocol, port, env=None):
        self._place = place
        self._server_words, self._client_words = server, client
        self._protocol, self._port = protocol, port
        self._env = env
        self._stack = contextlib.ExitStack()
        self.server = self.client = None

    def __enter__(self):
        with self._stack as stack:
            command = self._place.command("server", self._server_words)
            self.server = stack.enter_context(Process(command, env=self._env))
            places.wait_for_port(self._place, self._protocol, self._port, self.server)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_):
        self._stack.close()

    def start(self):
        command = self._place.command("client", self._client_words)
        self.client = self._stack.enter_context(Process(command, env=self._env))

    def run(self, timeout_s):
        self.start()
        return self.finish(timeout_s)

    def finish(self, timeout_s):
        """Waits for the client, ends the server if it does not end by itself, returns what the client printed."""
        self.client.wait(timeout_s)
        if self.client.code != 0:
            raise Failure(f"failed: {self.client.describe()}\nits server: {self.server.describe()}")
        with contextlib.suppress(Failure):
            self.server.wait(1)
        self.server.end()
        return self.client.out

    @property
    def cpu_s(self):
        return self.server.cpu_s + self.client.cpu_s


def parse(text, what):
    try:
        report = json.loads(text)
    except json.JSONDecodeError as error:
        raise Failure(f"{what} did not print JSON ({error}): {text[-500:]}") from None
    if report.get("error"):
        raise Failure(f"{what}: {report['error']}")
    return report


def sent_gb(report):
    """Of an iperf3 or srd-perf report: 10^9 bytes sent in the whole run, omitted time included."""
    return sum(interval["sum"]["bytes"] for interval in report["intervals"]) / 1e9


class Tools:
    """Runs programs; `build` is the folder that the project was built in."""

    def __init__(self, build):
        self._srd_perf = self._built(build / "apps" / "srd-perf")
        self._exchange = self._built(build / "perf" / "tcp_exchange")
        self._mptcp = None
        self.incidents = []  # what readers of the figures should know

    @staticmethod
    def _built(path):
        if not path.is_file():
            raise Failure(f"{path} does not exist. Build it: cmake -B build && cmake --build build -j; "
                          "or name another build folder: --build DIR")
        return str(path)

    # ---- srd-perf ----------------------------------------------------------------------------------

    def srd_pair(self, place, options, server_options=()):
        """A server for one client, and that client with a JSON report."""
        server = [self._srd_perf, "-s", "-1", "-p", SRD_PORT, *server_options]
        client = [self._srd_perf, "-c", place.target, "-p", SRD_PORT, "-J", *options]
        return Pair(place, server, client, "udp", SRD_PORT)

    def srd(self, place, options, seconds, server_options=()):
        """One whole run; returns (report, processor time of both ends)."""
        with self.srd_pair(place, ["-t", seconds, *options], server_options) as pair:
            report = parse(pair.run(seconds + PATIENCE_S), "srd-perf")
            return report, pair.cpu_s

    def srd_bulk(self, place, seconds, omit, *options):
        report, cpu_s = self.srd(place, ["-O", omit, *options], seconds)
        return Bulk(report["end"]["sum_received"]["bits_per_second"], cpu_s / sent_gb(report), report)

    def srd_server(self, place):
        """A server that stays; for srd_client()."""
        server = Process(place.command("server", [self._srd_perf, "-s", "-p", SRD_PORT]))
        try:
            places.wait_for_port(place, "udp", SRD_PORT, server)
        except BaseException:
            server.__exit__()
            raise
        return server

    def srd_client(self, place, options, timeout_s):
        command = [self._srd_perf, "-c", place.target, "-p", SRD_PORT, "-J", *options]
        with Process(place.command("client", command)) as client:
            client.wait(timeout_s)
            return parse(client.out, "srd-perf")

    # ---- iperf3 ------------------------------------------------------------------------------------

    @staticmethod
    def _iperf3_pair(place, port, seconds, omit, options=(), env=None):
        iperf3 = need("iperf3")
        server = [iperf3, "-s", "-1", "-p", port]
        client = [iperf3, "-c", place.target, "-p", port, "-J", "-t", seconds, "-O", omit, *options]
        return Pair(place, server, client, "tcp", port, env)

    def tcp_bulk(self, place, seconds, omit, *options, env=None):
        """One connection. Now and then an iperf3 hangs at its end; such a run is repeated, and noted."""
        for last_try in False, True:
            with self._iperf3_pair(place, TCP_PORT, seconds, omit, options, env) as pair:
                try:
                    report = parse(pair.run(seconds + omit + PATIENCE_S), "iperf3")
                except Hung:
                    if last_try:
                        raise
                    self.incidents.append("A run of iperf3 did not end and was repeated.")
                    continue
                return Bulk(report["end"]["sum_received"]["bits_per_second"], pair.cpu_s / sent_gb(report), report)
        raise AssertionError("not reached")

    def tcp_processes(self, place, seconds, omit, processes):
        """One connection in each of several processes: iperf3 3.12 has one thread only.

        Every process runs START_MARGIN_S longer than what counts, so that all of them send during all that counts.
        What counts is what the senders hand to the kernel, as only their intervals tell when.
        """
        with contextlib.ExitStack() as stack:
            pairs = [stack.enter_context(self._iperf3_pair(place, port, seconds + START_MARGIN_S, omit))
                     for port in range(TCP_PORT, TCP_PORT + processes)]
            began = time.monotonic()
            for pair in pairs:
                pair.start()
            if time.monotonic() - began > START_MARGIN_S:
                raise Failure(f"{processes} iperf3 took over {START_MARGIN_S} s to start: this machine is busy")
            reports = [parse(pair.finish(seconds + omit + PATIENCE_S), "iperf3") for pair in pairs]
            cpu_s = sum(pair.cpu_s for pair in pairs)
        bits_per_s = 0.0
        for report in reports:
            counted = [entry["sum"] for entry in report["intervals"]
                       if not entry["sum"]["omitted"] and entry["sum"]["end"] < seconds + 0.5]
            bits_per_s += 8 * sum(entry["bytes"] for entry in counted) / sum(entry["seconds"] for entry in counted)
        return Bulk(bits_per_s, cpu_s / sum(map(sent_gb, reports)), {"processes": reports})

    def why_no_mptcp(self):
        """None, or the reason why this machine has no MPTCP."""
        if not pathlib.Path("/proc/sys/net/mptcp/enabled").exists():
            return "this kernel has no MPTCP"
        return None

    def mptcp_bulk(self, fabric, seconds, omit):
        """iperf3 over one MPTCP connection; the fabric was told to allow subflows."""
        if self._mptcp is None:
            self._mptcp = tempfile.TemporaryDirectory(prefix="compare-")
            need("cc")
            command = [places.ROOT / "perf" / "mptcp_socket.sh", f"{self._mptcp.name}/mptcp.so"]
            made = subprocess.run(command, capture_output=True, text=True, check=False)
            if made.returncode != 0:
                raise Failure(f"mptcp_socket.c does not compile: {made.stderr}")
        before = fabric.mptcp_joins()
        run = self.tcp_bulk(fabric, seconds, omit, env={"LD_PRELOAD": f"{self._mptcp.name}/mptcp.so"})
        # Control and data connection of iperf3 get further subflows each.
        joined = fabric.mptcp_joins() - before
        if joined < 2 * (places.MPTCP_SUBFLOWS - 1):
            raise Failure(f"only {joined} further MPTCP subflows came about; this would compare with less than MPTCP")
        return run

    # ---- requests and answers ------------------------------------------------------------------------

    def exchange_pair(self, place, seconds, *options, sizes=(64, 64)):
        sizes = ["--size", sizes[0], "--response-size", sizes[1]]
        server = [self._exchange, "-s", "-p", EXCHANGE_PORT, *sizes]
        client = [self._exchange, "-c", place.target, "-p", EXCHANGE_PORT, "-t", seconds, *options, *sizes]
        return Pair(place, server, client, "tcp", EXCHANGE_PORT)

    def exchange(self, place, seconds, *options, sizes=(64, 64)):
        """tcp_exchange; returns (report, processor time of both ends)."""
        with self.exchange_pair(place, seconds, *options, sizes=sizes) as pair:
            report = parse(pair.run(seconds + PATIENCE_S), "tcp_exchange")
            return report, pair.cpu_s

    def sockperf(self, place, seconds):
        """Median round trip in microseconds of 64 B UDP datagrams, both ends polling."""
        sockperf = need("sockperf")
        to = ["-i", place.target, "-p", SOCKPERF_PORT]
        server = [sockperf, "server", *to, "--nonblocked"]
        client = [sockperf, "ping-pong", *to, "--full-rtt", "--nonblocked", "-m", 64, "-t", seconds]
        with Pair(place, server, client, "udp", SOCKPERF_PORT) as pair:
            text = pair.run(seconds + PATIENCE_S)
        found = re.search(r"percentile 50\.0+ *= *([\d.]+)", text)
        if found is None:
            raise Failure(f"sockperf printed no median: {text[-1000:]}")
        return float(found.group(1))
