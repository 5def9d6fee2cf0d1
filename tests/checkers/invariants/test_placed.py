import pytest

from checkers.invariants.placed import crowded, reordered

TWO_RACKS: dict[int, str | None] = {1: "a", 2: "b", 3: "a", 4: "b"}


@pytest.mark.parametrize("replicas", [[1], [1, 2], [3, 4], [1, 2, 3], [4, 3, 2, 1]])
def test_replicas_are_in_as_many_racks_as_possible(replicas: list[int]) -> None:
    """More replicas than racks share some of them."""
    assert crowded(replicas, TWO_RACKS) is None


@pytest.mark.parametrize("replicas", [[1, 3], [2, 4]])
def test_a_rack_is_not_used_twice_while_another_one_has_no_replica(replicas: list[int]) -> None:
    """The partition would be lost with that rack."""
    assert crowded(replicas, TWO_RACKS) is not None


def test_only_what_is_known_is_judged() -> None:
    """Without racks, or with those of some brokers only, any place is right."""
    assert crowded([1, 3], {1: None, 2: None, 3: None}) is None
    assert crowded([1, 3], {1: "a", 2: None, 3: "a"}) is None
    assert crowded([1, 3], {1: "a", 2: "b"}) is None, "broker 3 was not alive"
    assert crowded([1, 3], {1: "a", 3: "a"}) is None, "there is no other rack"


def test_a_reassignment_has_the_order_that_was_asked_for() -> None:
    """Replicas that it removes may be anywhere until it is complete."""
    assert reordered([2, 1], [2, 1], []) is None
    assert reordered([2, 1], [3, 2, 1], [3]) is None
    assert reordered([2, 1], [1, 2], []) is not None
    assert reordered([2, 1], [2, 1, 3], []) is not None
