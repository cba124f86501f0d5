# SPDX-License-Identifier: Apache-2.0
"""Statistics of the comparisons: spread of a few runs, recovery after a fault from a receiver log."""
import math
import statistics

WINDOW_BINS = 20
RECOVERED = 0.95


def median(values):
    return statistics.median(values)


def percentile(values, percent):
    """Nearest rank: the smallest value that at least `percent` of all do not exceed."""
    ordered = sorted(values)
    return ordered[max(math.ceil(percent / 100 * len(ordered)), 1) - 1]


def spread(values):
    return {"n": len(values), "median": median(values), "min": min(values), "p10": percentile(values, 10),
            "p90": percentile(values, 90), "max": max(values)}


class ReceiverLog:
    """Bytes received per bin; bin 0 begins at start_ns of CLOCK_MONOTONIC."""

    def __init__(self, bin_ms, start_ns, bins):
        self.bin_ns = bin_ms * 1_000_000
        self.start_ns = start_ns
        self.bins = bins
        self._before = [0]  # _before[i]: bytes in the bins before bin i
        for received in bins:
            self._before.append(self._before[-1] + received)

    def first_bin_from(self, instant_ns):
        """Number of the first bin that begins at instant_ns or later."""
        return max(-(-(instant_ns - self.start_ns) // self.bin_ns), 0)

    def rate(self, from_ns, until_ns):
        """Mean bytes per bin over the whole bins in between."""
        first, end = self.first_bin_from(from_ns), (until_ns - self.start_ns) // self.bin_ns
        if not 0 <= first < end <= len(self.bins):
            raise ValueError(f"bins {first} to {end} are not in a log of {len(self.bins)}")
        return (self._before[end] - self._before[first]) / (end - first)

    def recovery_ms(self, instant_ns, full_rate, until_ns):
        """From instant_ns to the begin of the first window of 20 bins that carries at least 95 % of full_rate.

        full_rate is in bytes per bin. Windows begin at bins, so 0 to 1 ms is the least there can be. If no
        such window ends before until_ns: the time to until_ns, which is then a lower bound.
        """
        first, end = self.first_bin_from(instant_ns), (until_ns - self.start_ns) // self.bin_ns
        if end > len(self.bins):
            raise ValueError(f"the log has {len(self.bins)} bins and ends before bin {end}")
        need = RECOVERED * full_rate * WINDOW_BINS
        for i in range(first, end - WINDOW_BINS + 1):
            if self._before[i + WINDOW_BINS] - self._before[i] >= need:
                return (self.start_ns + i * self.bin_ns - instant_ns) / 1e6
        return (until_ns - instant_ns) / 1e6
