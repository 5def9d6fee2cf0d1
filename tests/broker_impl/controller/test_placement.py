"""How the replicas of a new topic are placed on brokers."""

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.controller.placement import assign
from broker_impl.errors import ApiError


@given(
    racks=st.dictionaries(
        st.integers(0, 30), st.sampled_from(["a", "b", "c"]), min_size=1, max_size=9
    )
    | st.dictionaries(st.integers(0, 30), st.none(), min_size=1, max_size=9),
    partitions=st.integers(1, 30),
    data=st.data(),
    seed=st.integers(0, 99),
)
def test_every_assignment(
    racks: dict[int, str | None], partitions: int, data: st.DataObject, seed: int
) -> None:
    """Replicas are on distinct brokers, leaders are balanced, and racks share replicas evenly."""
    copies = data.draw(st.integers(1, len(racks)))
    assignment = assign(racks, partitions, copies, random.Random(seed))
    assert list(assignment) == list(range(partitions))
    for replicas in assignment.values():
        assert len(set(replicas)) == len(replicas) == copies
        assert set(replicas) <= racks.keys()
    leads = Counter(dict.fromkeys(racks, 0))
    leads.update(replicas[0] for replicas in assignment.values())
    assert max(leads.values()) - min(leads.values()) <= 1
    if None not in racks.values():
        sizes = Counter(racks.values())
        for replicas in assignment.values():
            held = Counter(racks[broker] for broker in replicas)
            for rack in sizes:
                # A rack is used again only when every other rack holds as many replicas, or is
                # full.
                assert all(
                    held[rack] <= held[other] + 1 or held[other] == sizes[other] for other in sizes
                )


def test_followers_of_one_broker_are_spread() -> None:
    """The followers of one broker's partitions are spread, so that several take over its load."""
    assignment = assign(dict.fromkeys(range(5)), 20, 2, random.Random(1))
    second = {replicas[1] for replicas in assignment.values() if replicas[0] == 0}
    assert len(second) == 4


def test_leaders_take_turns_across_racks() -> None:
    """Consecutive partitions are led in different racks."""
    racks: dict[int, str | None] = {1: "a", 2: "a", 3: "b", 4: "b"}
    assignment = assign(racks, 4, 1, random.Random(1))
    led_in = [racks[replicas[0]] for replicas in assignment.values()]
    assert all(one != other for one, other in pairwise(led_in))


def test_the_seed_decides() -> None:
    """The same seed gives the same assignment; other seeds start at other brokers."""
    brokers = dict.fromkeys(range(5))
    first = assign(brokers, 3, 3, random.Random(1))
    assert assign(brokers, 3, 3, random.Random(1)) == first
    assert any(assign(brokers, 3, 3, random.Random(seed)) != first for seed in range(9))


def test_racks_are_of_all_brokers_or_of_none() -> None:
    """Either all brokers have a rack or none has: Kafka refuses to guess the missing racks."""
    with pytest.raises(ApiError, match="some brokers have no rack"):
        assign({1: "a", 2: None}, 1, 1, random.Random(1))
