"""Tests how the command line answers hostile inputs.

    python -m bench.hostile --count 300

No input may end in a traceback or in status 1 without an anomaly, or be accepted silently. Each one
that does is printed, and the exit status is 1 if there is any.
"""

import argparse
import sys
import time
from collections import Counter

from bench.hostile import inputs, runner
from bench.hostile.case import complaints


def main() -> int:
    """Run ``--count`` inputs of all kinds; the seed comes from the clock unless one is given."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=300, help="number of inputs; 0: all")
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000)
    parser.add_argument("--kind", choices=inputs.KINDS, action="append")
    parser.add_argument("--verbose", action="store_true", help="print every answer")
    asked = parser.parse_args()
    cases = inputs.sample(asked.seed, asked.count or None, asked.kind or inputs.KINDS)
    statuses: Counter[object] = Counter()
    wrong = 0
    for case in cases:
        answer = runner.answer(case)
        statuses[answer.status] += 1
        found = complaints(case, answer)
        wrong += bool(found)
        if found or asked.verbose:
            print(f"{case.name}: {'; '.join(found) or answer.status}")
            print(f"    {(answer.err or answer.out).strip()[-600:]!r}", flush=True)
    counts = ", ".join(
        f"{count} with {status}" for status, count in sorted(statuses.items(), key=str)
    )
    print(f"{len(cases)} hostile inputs, seed {asked.seed}: {wrong} wrong answers ({counts})")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
