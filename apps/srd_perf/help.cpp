// SPDX-License-Identifier: Apache-2.0
// The texts of --help and --version. man/srd-perf.1 says the same at length.
#include "srd_perf/help.hpp"

#include "common/version.hpp"

namespace perf {

std::string program_version() {
  return "srd-perf " + apps::version_text();
}

std::string version_text() {
  return program_version() + " (OpenSRD)\n";
}

std::string help_text() {
  return R"(Usage: srd-perf [-s|-c host] [options]
       srd-perf [-h|--help] [-v|--version]

Measures what one OpenSRD flow carries, with the habits of iperf3.

Server or client:
  -p, --port #              server's UDP port, to listen on or send to (default 5211)
  -f, --format [kmgtKMGT]   unit of rates: Kbits, Mbits, ... KBytes, MBytes, ...
  -i, --interval #          seconds between reports (default 1; 0: none)
  -B, --bind HOST           local address
  -4, --version4            only IPv4
  -6, --version6            only IPv6
      --device STRING       OpenSRD device (default "udp:"; srd-info lists them),
                            without an address: -B and -p give it
      --paths #             network paths per peer (default: the device's, 32)
      --busy-poll           never sleep: lowest latency, one core at 100 %
      --bins-ms #           log received bytes in bins of # ms (into the JSON report)
  -J, --json                report as one JSON document
      --logfile FILE        append the report to FILE
  -T, --title STRING        prefix of every line
  -V, --verbose             more details
      --forceflush          flush the output at every interval
Server:
  -s, --server              run as server; serves several clients at once
  -1, --one-off             end after one client
Client:
  -c, --client HOST         run as client of the server at HOST
  -t, --time #              seconds to send (default 10; 0: until Ctrl-C)
  -n, --bytes #[KMGT]       bytes to send, instead of -t
  -l, --length #[KMGT]      bytes of one message (default 1M)
  -P, --parallel #          streams, all in the same flow (default 1)
  -R, --reverse             the server sends
      --bidir               both send
  -b, --bitrate #[KMGT]     bits per second of each stream (default 0: unlimited)
  -w, --window #[KMGT]      bytes outstanding of each stream (default 8M)
  -O, --omit #              leave out the first # seconds
      --cport #             local UDP port (default: any)
      --connect-timeout #   ms to wait for the server's first answer (default 3000)
      --verify              check every byte, and that each message comes exactly once
      --get-server-output   print the server's report as well
Client, request and response:
      --latency             measure latencies of requests and answers; not with -R, --bidir, -P,
                            -b or -n
      --depth #             closed loop: # requests outstanding (default 1)
      --rate #[KMGT]        open loop: # requests per second, sent on schedule whether answers
                            come or not; latency counts from the scheduled time
      --size #[KMGT]        bytes of a request (default 64)
      --response-size #[KMGT] bytes of an answer (default 64)
Other:
  -h, --help                this text
  -v, --version             the version

[KMGT]: suffix for kilo, mega, giga, tera: powers of 1024 for bytes, of 1000 for rates.
Exit codes: 0 success, 1 network or peer failure, 2 usage.
After Ctrl-C the report so far is printed, and the exit code is 0.

Examples:
  srd-perf -s                               serve until Ctrl-C
  srd-perf -c 10.0.0.2                      one flow over all paths for 10 s
  srd-perf -c 10.0.0.2 -R -J                the other way, as JSON
  srd-perf -c 10.0.0.2 --verify -n 1G       1 GiB, every byte checked
  srd-perf -c 10.0.0.2 --latency --depth 8  eight requests at a time
  srd-perf -c 10.0.0.2 --latency --rate 50K --size 4K
                                            open loop, 50,000 requests per second
)";
}

}  // namespace perf
