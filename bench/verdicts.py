"""Measures how many random histories are judged correctly: correct ones, and corrupted ones.

    python -m bench.verdicts --count 5000

A correct history that is not valid is a false alarm, a corrupted one that is not invalid a miss.
Each is printed with its seed. The exit status is 1 if there is a false alarm, or if more than one
corrupted history in a thousand is missed.
"""

import argparse
import random
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from bench import broker_model, corruptions
from harness.app import check
from model import history
from model.op import Op

MISSES_PER_MILLE = 1
CORRUPTIONS_MAX = 3


def main() -> int:
    """Judge ``--count`` histories of both kinds; seeds come from the clock unless one is given."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=5000)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000)
    asked = parser.parse_args()
    seeds = range(asked.seed, asked.seed + asked.count)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "history.jsonl")
        alarms = sum(_is_alarm(seed, path) for seed in seeds)
        made: Counter[str] = Counter()
        misses = sum(_is_missed(seed, path, made) for seed in seeds)
    print(f"{asked.count:,} correct histories from seed {asked.seed} on: {alarms} false alarms")
    print(f"{asked.count:,} corrupted histories: {misses} missed")
    for name, count in sorted(made.items()):
        print(f"  {name:24} {count:6,}")
    return int(alarms > 0 or misses * 1000 > MISSES_PER_MILLE * asked.count)


def _is_alarm(seed: int, path: Path) -> bool:
    valid, story = _judged(broker_model.history(random.Random(seed)).events, path)
    if valid is not True:
        print(f"seed {seed} is correct: {story}", flush=True)
    return valid is not True


def _is_missed(seed: int, path: Path, made: "Counter[str]") -> bool:
    rng = random.Random(seed)
    count = rng.randint(1, CORRUPTIONS_MAX)
    ops, names = corruptions.corrupt(broker_model.history(rng), rng, count)
    made.update(names)
    valid, story = _judged(ops, path)
    if valid is not False:
        print(f"seed {seed} has {', '.join(names)}: {story}", flush=True)
    return valid is not False


def _judged(ops: list[Op], path: Path) -> tuple[bool | str, str]:
    history.write(path, ops)
    judged = check.examine(path, inline=True)
    return judged.verdict.valid, check.describe(judged.verdict, judged.findings, None)


if __name__ == "__main__":
    sys.exit(main())
