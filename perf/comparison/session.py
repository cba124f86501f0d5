# SPDX-License-Identifier: Apache-2.0
"""One case being measured: how many runs, how long each, and how far it is."""
import dataclasses
import sys

from comparison.tools import Tools


@dataclasses.dataclass
class Session:
    case: str
    tools: Tools
    runs: int
    quick: bool  # only to see that everything works
    seconds: int = 5  # measured time of a run
    omit: int = 1  # left out before it

    def __post_init__(self):
        if self.quick:
            self.runs, self.seconds = min(self.runs, 1), 1

    def progress(self, text):
        print(f"{self.case}: {text}", file=sys.stderr, flush=True)

    def interleave(self, plans):
        """Runs each function of {name: (function, runs)} so often, in turns, and returns {name: [results]}.

        Rounds go forth and back, so that a drift of the machine hurts nobody more than the others.
        """
        results = {name: [] for name in plans}
        counts = {name: 1 if self.quick else runs for name, (_, runs) in plans.items()}
        rounds = max(counts.values())
        for number in range(rounds):
            names = [name for name, count in counts.items() if number < count]
            for name in names if number % 2 == 0 else reversed(names):
                self.progress(f"round {number + 1} of {rounds}: {name}")
                results[name].append(plans[name][0]())
        return results
