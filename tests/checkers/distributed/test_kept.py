"""Offsets that are kept: intervals, and single ones."""

import random

import numpy as np

from checkers.distributed import kept


def test_intervals_and_single_offsets_are_joined() -> None:
    """Whatever the intervals are, exactly their offsets and the single ones are kept."""
    rng = random.Random(0)
    for _ in range(200):
        begins = rng.sample(range(40), rng.randint(0, 5))
        intervals = [(begin, begin + rng.randint(1, 9)) for begin in begins]
        single = np.array(rng.sample(range(60), rng.randint(0, 6)), dtype=np.int64)
        wanted = {*single.tolist()}.union(*(range(*each) for each in intervals))
        found = kept.joined(intervals, single)
        assert np.flatnonzero(found.has(np.arange(60))).tolist() == sorted(wanted)
        assert (found.begins[1:] > found.ends[:-1]).all()
        for offset in range(60):
            assert found.before(offset) == max((n for n in wanted if n <= offset), default=-1) or (
                offset in wanted
            )


def test_records_without_an_offset_are_kept_unless_nothing_is() -> None:
    """Their place is not known, so they may matter anywhere."""
    unknown = np.array([-1])
    assert kept.joined([(0, 4)], np.zeros(0, dtype=np.int64)).has(unknown).all()
    assert not kept.NOTHING.has(np.array([-1, 0, 7])).any()
