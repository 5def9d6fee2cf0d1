"""Folding: a finding that a more basic one explains is counted under it, and not on its own.

A lost, duplicated or phantom record, one that was read uncommitted, or an offset with two values
causes findings about order. A finding is explained if it is gone once the record is removed from
the history. What is left stands on its own.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

import numpy as np

from checkers.kernels.found import Found
from checkers.kernels.log import Log

BASIC = (
    "lost-write",
    "duplicate",
    "phantom",
    "inconsistent-offsets",
    "G1a",
    "precommitted-read",
    "G1c-process",
    "G1c-realtime",
)
"""The anomalies that may explain others."""


def fold(
    log: Log,
    basic: Sequence[Found],
    derived: Sequence[Found],
    again: Callable[[Log], Iterable[Found]],
) -> list[Found]:
    """Return the findings that stand, each with the number of those it explains.

    ``derived`` are the findings about order; ``again`` finds those of another log.
    """

    def by_offset(f: Found) -> bool:
        return f.anomaly == "inconsistent-offsets"

    if not basic:
        return list(derived)
    folded: Counter[int] = Counter()
    contradicted: set[int] = set()
    standing = list(_conflicts_explained(log, basic, folded, contradicted))
    explaining = [f for f in standing if f.anomaly in BASIC]
    if explaining and derived:
        clean = log.without(
            offsets=[f.offset for f in explaining if by_offset(f) and f.offset is not None],
            values=[f.value for f in explaining if not by_offset(f) and f.value is not None],
        )
        left = list(again(clean))
        for f in _nearest(explaining, _gone(derived, left)):
            folded[id(f)] += 1
        derived = left
    return [
        *(
            replace(
                f,
                folded=folded[id(f)],
                variant="contradicted" if id(f) in contradicted else f.variant,
            )
            for f in standing
        ),
        *derived,
    ]


def fold_keys(found: Sequence[Found]) -> list[Found]:
    """Fold findings about the last record of a record key into the loss of that record. A loss that
    a tombstone may explain, because of its age, explains nothing that was seen earlier."""
    lost = {f.value: n for n, f in enumerate(found) if f.anomaly == "lost-write"}

    def reason_of(f: Found) -> int | None:
        reason = lost.get(f.value) if f.anomaly.endswith("-key") else None
        if reason is not None and found[reason].variant.startswith("deleted"):
            return reason if f.also >= found[reason].also else None
        return reason

    return _folded(found, reason_of)


def fold_groups(found: Sequence[Found]) -> list[Found]:
    """Fold findings about where members began into the lost commit that explains them."""
    lost = {
        (f.group, f.ops[0]): n
        for n, f in enumerate(found)
        if f.anomaly in ("lost-commit", "commit-regression") and not f.variant
    }
    return _folded(
        found,
        lambda f: lost.get((f.group, f.ops[0])) if f.anomaly.startswith("resume-") else None,
    )


def _folded(found: Sequence[Found], reason_of: Callable[[Found], int | None]) -> list[Found]:
    """Return the findings that stand, each with the number of findings that it explains.

    ``reason_of`` returns the index of the finding that explains another one.
    """
    folded: Counter[int] = Counter()
    standing = []
    for n, f in enumerate(found):
        reason = reason_of(f)
        if reason is None:
            standing.append(n)
        else:
            folded[reason] += 1
    return [replace(found[n], folded=found[n].folded + folded[n]) for n in standing]


def _conflicts_explained(
    log: Log, basic: Sequence[Found], folded: Counter[int], contradicted: set[int]
) -> Iterable[Found]:
    """Drop each conflict about an offset whose values, except at most one, have a better
    explanation: lost (another record took its place), a phantom, or a duplicate that is read
    elsewhere, which is then ``contradicted``."""
    known = log.known
    by_value = {
        anomaly: {f.value: f for f in basic if f.anomaly == anomaly}
        for anomaly in ("lost-write", "phantom", "duplicate")
    }

    def explanation(value: int, read_here: bool) -> Found | None:
        lost_or_phantom = by_value["lost-write"].get(value) or by_value["phantom"].get(value)
        return lost_or_phantom or (None if read_here else by_value["duplicate"].get(value))

    for f in basic:
        if f.anomaly == "inconsistent-offsets":
            begin, end = np.searchsorted(known.offset, (_place(f), _place(f) + 1))
            reasons = [
                explanation(value, read)
                for value, read in zip(
                    known.value[begin:end].tolist(), known.read[begin:end].tolist(), strict=True
                )
            ]
            if reasons.count(None) <= 1:
                folded.update({id(reason) for reason in reasons if reason})
                contradicted |= {id(r) for r in reasons if r and r.anomaly == "duplicate"}
                continue
        yield f


def _gone(derived: Sequence[Found], left: Sequence[Found]) -> Iterable[Found]:
    """Yield what is no longer found; a skip that became shorter is still there."""
    stays = Counter((f.anomaly, f.ops) for f in left)
    for f in derived:
        if stays[f.anomaly, f.ops]:
            stays[f.anomaly, f.ops] -= 1
        else:
            yield f


def _nearest(explaining: Sequence[Found], gone: Iterable[Found]) -> Iterable[Found]:
    """Yield for each explained finding the one that explains it: the nearest in the log."""
    ordered = sorted(explaining, key=_place)
    offsets = [_place(f) for f in ordered]
    for f in gone:
        place = _place(f)
        after = bisect_left(offsets, place)
        before = max(after - 1, 0)
        nearer = after < len(offsets) and offsets[after] - place < place - offsets[before]
        yield ordered[after if nearer else before]


def _place(f: Found) -> int:
    return -1 if f.offset is None else f.offset
