"""A member's events are reported in their order."""

from workloads.client.membership import Feed


def test_rebalances_stand_before_the_records_that_follow_them() -> None:
    """One operation reports rebalances and the records after them."""
    feed = Feed("g")
    feed.assigned(3, ["b-0", "a-0"])
    feed.read("a-0", [[4, 40], [5, 50]])
    feed.read("b-0", [[0, 1]])
    feed.read("a-0", [[7, 70]])
    assert feed.take() == [
        ["assigned", "g", 3, {"a-0": None, "b-0": None}],
        ["poll", {"a-0": [[4, 40], [5, 50], [7, 70]], "b-0": [[0, 1]]}],
    ]
    assert feed.take() == [["poll", {}]]


def test_what_follows_records_waits_for_the_next_operation() -> None:
    """A rebalance after records is left to the next operation."""
    feed = Feed("g")
    feed.read("a-0", [[4, 40]])
    feed.committed({"a-0": 5})
    feed.gone("revoked", 3, ["a-0"])
    feed.assigned(4, ["a-1"])
    feed.read("a-1", [[0, 1]])
    assert feed.has_records
    assert feed.take() == [["poll", {"a-0": [[4, 40]]}]]
    assert feed.take() == [
        ["commit", "g", {"a-0": 5}, "listener"],
        ["revoked", "g", 3, ["a-0"]],
        ["assigned", "g", 4, {"a-1": None}],
        ["poll", {"a-1": [[0, 1]]}],
    ]
    assert not feed.has_records


def test_records_that_are_read_again_are_reported_once() -> None:
    """After a seek, what was read before it is dropped; rebalances and other partitions stay."""
    feed = Feed("g")
    feed.read("a-0", [[4, 40]])
    feed.assigned(4, ["a-1"])
    feed.read("a-0", [[5, 50]])
    feed.read("a-1", [[0, 1]])
    assert feed.take() == [["poll", {"a-0": [[4, 40]]}]]
    feed.forget(["a-0"])
    assert feed.take() == [["assigned", "g", 4, {"a-1": None}], ["poll", {"a-1": [[0, 1]]}]]
    feed.read("a-0", [[6, 60]])
    feed.forget(["a-0", "b-0"])
    assert not feed.has_records


def test_where_a_member_begins_can_be_filled_in_until_it_is_told() -> None:
    """The start position of a partition, which is known after the assignment, can be filled in."""
    feed = Feed("g")
    feed.assigned(None, ["a-0", "a-1"])
    (begins,) = feed.unplaced()
    begins["a-1"] = 7
    assert feed.take() == [["assigned", "g", None, {"a-0": None, "a-1": 7}], ["poll", {}]]
    assert feed.unplaced() == []


def test_positions_are_those_of_owned_keys() -> None:
    """Positions follow the last record, and are removed when a partition is revoked or lost."""
    feed = Feed("g")
    feed.read("a-0", [[4, 40]])
    feed.read("a-1", [])
    feed.read("b-0", [[9, 1]])
    assert feed.positions == {"a-0": 5, "b-0": 10}
    feed.gone("lost", None, {"a-0", "c-0"})
    assert feed.positions == {"b-0": 10}


def test_a_loss_counts_until_it_is_reported() -> None:
    """A partition is lost from its revocation until an operation has reported that."""
    feed = Feed("g")
    feed.assigned(3, ["a-0", "a-1", "b-0"])
    feed.read("a-0", [[4, 40]])
    assert not feed.has_lost(["a-0", "a-1"])
    feed.gone("revoked", 3, ["a-0"])
    feed.gone("lost", 3, ["a-1"])
    assert [feed.has_lost([key]) for key in ("a-0", "a-1", "b-0")] == [True, True, False]
    feed.take()  # the records before the losses
    assert feed.has_lost(["b-0", "a-0"])
    feed.take()
    assert not feed.has_lost(["a-0", "a-1"])
