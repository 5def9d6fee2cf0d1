"""Count how many random lives of a data directory lose something, or cannot start."""

import argparse
import logging
import random
import sys
import time
from collections import Counter

from bench import lives
from bench.lives.life import Life, Lost

ENDS_MAX = 12


def run(seeds: range, counts: Counter[str]) -> int:
    """Live each seed's life; print those that are wrong, and return how many."""
    wrong = 0
    for seed in seeds:
        try:
            Life(seed, counts).live(random.Random(seed).randint(2, ENDS_MAX))
        except (Lost, AssertionError) as error:
            wrong += 1
            print(f"seed {seed}: {error or repr(error)}", flush=True)
    return wrong


def main() -> int:
    """Return 1 if a life is wrong, else 0; seeds come from the clock unless one is given."""
    parser = argparse.ArgumentParser(
        description=lives.__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000)
    asked = parser.parse_args()
    logging.disable(logging.WARNING)  # torn logs are expected
    counts: Counter[str] = Counter()
    wrong = run(range(asked.seed, asked.seed + asked.count), counts)
    print(f"{asked.count:,} lives from seed {asked.seed} on: {wrong} wrong")
    for name, count in sorted(counts.items()):
        print(f"  {name:42} {count:9,}")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
