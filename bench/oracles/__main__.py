"""Compares the checkers with judges that try every order, on small random histories.

    python -m bench.oracles --count 50000

Each disagreement is printed with its seed, and the exit status is 1 if there is any.
"""

import argparse
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from random import Random
from typing import Any

from bench.oracles import isolation_kinds, kinds, session_kinds
from checkers.linearizability import judging, models

Compared = tuple[bool, Any]
"""Whether the history is valid, by trying every order or by its construction, and what the checker
says."""


def _of_object(kind: kinds.Kind) -> Callable[[Random], Compared]:
    def compare(rng: Random) -> Compared:
        operations = kinds.draw(kind, rng, rng.randrange(1, 7))
        wanted = kinds.is_linearizable(kind.model, operations)
        if isinstance(kind.model, models.KeyValue):
            operations = [each._replace(value=["k", each.value]) for each in operations]
        return wanted, judging.judge(operations, kind.model).valid

    return compare


def _of_sessions(consistency: str) -> Callable[[Random], Compared]:
    def compare(rng: Random) -> Compared:
        operations = session_kinds.history(rng, rng.randrange(1, 7))
        wanted = session_kinds.is_explained(
            session_kinds.KIND.model, operations, session_kinds.PROMISES[consistency](operations)
        )
        found = judging.judge_sessions(operations, session_kinds.KIND.model, consistency)
        return wanted, found.valid

    return compare


def comparisons() -> Iterator[tuple[str, Callable[[Random], Compared]]]:
    """Yield what is compared, by name."""
    for name, kind in kinds.KINDS.items():
        yield name, _of_object(kind)
    for name, kind in kinds.UNIQUE.items():
        yield f"{name}, unique values", _of_object(kind)
    for consistency in session_kinds.PROMISES:
        yield consistency, _of_sessions(consistency)
    yield from isolation_kinds.comparisons()


def main() -> int:
    """Compare ``--count`` histories of each kind."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--count", type=int, default=50_000, help="histories of each kind (50,000)")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="only kinds whose names have this text")
    asked = parser.parse_args()
    wrong = 0
    for name, compare in comparisons():
        if asked.only not in name:
            continue
        found: Counter[bool] = Counter()
        for number in range(asked.count):
            wanted, valid = compare(Random(f"{name} {asked.seed} {number}"))
            found[wanted] += 1
            if valid is not wanted:
                wrong += 1
                print(f"{name}, number {number}: {valid}, and trying every order says {wanted}")
        print(f"{name}: {found[True]:,} valid, {found[False]:,} invalid", flush=True)
    print(f"{wrong} disagreements")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
