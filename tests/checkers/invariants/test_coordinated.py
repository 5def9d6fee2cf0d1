"""Answers of coordinators: what must be refused, and what must not."""

import pytest

from checkers.invariants import coordinated
from checkers.invariants.coordinated import (
    COMPLETING,
    EMPTY,
    FENCED_INSTANCE,
    ILLEGAL_GENERATION,
    NONE,
    PREPARING,
    REBALANCE,
    STABLE,
    UNKNOWN_MEMBER,
    Group,
    Said,
    Transaction,
)

MEMBERS = {"a": None, "b": "static"}


@pytest.mark.parametrize(
    ("state", "said", "on_heartbeat", "on_commit"),
    [
        (STABLE, Said("a", 3), NONE, NONE),
        (STABLE, Said("a", 2), ILLEGAL_GENERATION, ILLEGAL_GENERATION),
        (STABLE, Said("c", 3), UNKNOWN_MEMBER, UNKNOWN_MEMBER),
        (STABLE, Said("b", 3, "static"), NONE, NONE),
        (STABLE, Said("a", 3, "static"), FENCED_INSTANCE, FENCED_INSTANCE),
        (STABLE, Said("a", 3, "other"), UNKNOWN_MEMBER, UNKNOWN_MEMBER),
        (PREPARING, Said("a", 3), REBALANCE, NONE),
        (COMPLETING, Said("a", 3), NONE, REBALANCE),
        (STABLE, Said("", -1), UNKNOWN_MEMBER, UNKNOWN_MEMBER),
        (EMPTY, Said("", -1), UNKNOWN_MEMBER, NONE),
    ],
)
def test_members_are_refused_as_the_group_says(
    state: str, said: Said, on_heartbeat: int, on_commit: int
) -> None:
    """The right answers to a heartbeat and to a commit."""
    group = Group(state, 3, {} if state == EMPTY else MEMBERS)
    assert coordinated.on_heartbeat(group, said) == on_heartbeat
    assert coordinated.on_commit(group, said) == on_commit


@pytest.mark.parametrize(
    ("said", "right"),
    [
        (Said("a", 3), NONE),
        (Said("a", -1), NONE),
        (Said("", -1), NONE),
        (Said("", 2), ILLEGAL_GENERATION),
        (Said("a", 2), ILLEGAL_GENERATION),
        (Said("c", 3), UNKNOWN_MEMBER),
        (Said("c", -1), UNKNOWN_MEMBER),
        (Said("b", 3, "static"), NONE),
        (Said("c", 3, "static"), FENCED_INSTANCE),
        (Said("", -1, "static"), FENCED_INSTANCE),
        (Said("a", 3, "other"), NONE),
    ],
)
def test_commits_in_transactions_may_name_a_member(said: Said, right: int) -> None:
    """What they name must be right (KIP-447), whatever state the group is in."""
    for state in (STABLE, PREPARING, COMPLETING):
        group = Group(state, 3, MEMBERS)
        assert coordinated.on_transactional_commit(group, group, said) == right


def test_a_group_that_changes_during_a_commit_is_not_judged() -> None:
    """The commit was accepted before the change, or after it."""
    group, said = Group(STABLE, 3, MEMBERS), Said("c", 3)
    for other in (None, group._replace(generation=4), group._replace(members={"c": None})):
        assert coordinated.on_transactional_commit(group, other, said) is None
        assert coordinated.on_transactional_commit(other, group, said) is None
    dead = group._replace(state="Dead")
    assert coordinated.on_transactional_commit(dead, dead, said) is None


def test_errors_of_the_coordinator_say_nothing() -> None:
    """A member is misjudged if it is accepted or refused wrongly, whatever the coordinator does."""
    not_coordinator = 16
    assert coordinated.misjudged(NONE, NONE) is None
    assert coordinated.misjudged(ILLEGAL_GENERATION, NONE) is not None
    assert coordinated.misjudged(NONE, UNKNOWN_MEMBER) is not None
    assert coordinated.misjudged(ILLEGAL_GENERATION, not_coordinator) is None
    assert coordinated.misjudged(NONE, not_coordinator) is None
    assert coordinated.misjudged(None, UNKNOWN_MEMBER) is None
    assert coordinated.misjudged(FENCED_INSTANCE, UNKNOWN_MEMBER) is not None
    assert coordinated.misjudged(FENCED_INSTANCE, FENCED_INSTANCE) is None
    assert coordinated.misjudged(UNKNOWN_MEMBER, FENCED_INSTANCE) is None


def test_who_joins_is_a_member_of_the_generation() -> None:
    """A later generation of the group shows nothing."""
    group = Group(COMPLETING, 3, MEMBERS)
    assert coordinated.joined(group, "a", 3) is None
    assert coordinated.joined(group, "c", 3) is not None
    assert coordinated.joined(group, "a", 4) is not None
    assert coordinated.joined(group, "c", 2) is None


def test_a_generation_is_no_larger_than_configured() -> None:
    """A group is full at ``group.max.size``."""
    assert coordinated.too_large(3, 3) is None
    assert coordinated.too_large(4, 3) is not None


def test_members_of_a_generation_have_joined_it() -> None:
    """Dynamic members join each generation; static ones may be absent for a while."""
    assert coordinated.not_rejoined({"a": 1}, {"a": 2}, {"a": None}) is None
    assert coordinated.not_rejoined({"a": 1}, {"a": 1}, {"a": None}) is not None
    assert coordinated.not_rejoined({"a": 1}, {"a": 1}, {"b": None}) is None, "it was removed"
    assert coordinated.not_rejoined({"b": 1}, {"b": 1}, {"b": "static"}) is None


@pytest.mark.parametrize(
    ("state", "is_changed", "is_leader", "generation", "is_wrong"),
    [
        (STABLE, True, False, 3, True),
        (STABLE, False, True, 3, True),
        (STABLE, False, False, 3, False),
        (STABLE, True, True, 4, False),
        (COMPLETING, True, False, 3, True),
        (COMPLETING, False, True, 3, False),
        (PREPARING, True, True, 3, False),
    ],
)
def test_a_join_that_changes_something_begins_a_generation(
    state: str, is_changed: bool, is_leader: bool, generation: int, is_wrong: bool
) -> None:
    """A member that has not got the answer to its join gets it again."""
    group = Group(state, 3, {"a": None})
    why = coordinated.not_rebalanced(
        group, "a", generation, is_changed=is_changed, is_leader=is_leader
    )
    assert (why is not None) == is_wrong
    assert not coordinated.not_rebalanced(group, "b", 3, is_changed=True, is_leader=True)


def test_groups_with_members_stay() -> None:
    """A group without members may be deleted."""
    assert coordinated.deleted(Group(EMPTY, 3, {})) is None
    assert coordinated.deleted(Group(STABLE, 3, MEMBERS)) is not None


OPEN = Transaction(7, 2, "ONGOING", {"t-0"})


def test_only_the_current_producer_is_accepted() -> None:
    """The producer may have become current, or stopped to be it, while the request was open."""
    assert coordinated.of_producer(OPEN, OPEN, 7, 2) is None
    assert coordinated.of_producer(OPEN, OPEN, 7, 3) is not None
    assert coordinated.of_producer(OPEN, OPEN, 7, 1) is not None
    assert coordinated.of_producer(OPEN, OPEN, 8, 2) is not None
    assert coordinated.of_producer(OPEN, OPEN._replace(epoch=3), 7, 2) is None
    assert coordinated.of_producer(None, None, 7, 9) is None, "nothing is known"


def test_a_transaction_ends_in_one_way() -> None:
    """The same end may be repeated, the opposite one is refused."""
    committed = OPEN._replace(state="COMPLETE_COMMIT")
    assert coordinated.ended(committed, is_commit=True) is None
    assert coordinated.ended(committed, is_commit=False) is not None
    assert coordinated.ended(OPEN, is_commit=False) is None


def test_epochs_are_issued_once() -> None:
    """The next epoch is later than all that were issued before the request."""
    assert coordinated.issued(None, 0) is None
    assert coordinated.issued(4, 5) is None
    assert coordinated.issued(4, 4) is not None


def test_the_next_epoch_is_for_the_current_producer() -> None:
    """A producer that names no id, or the current one, may get it."""
    assert coordinated.named(OPEN, -1, -1, (7, 3)) is None
    assert coordinated.named(OPEN, 7, 2, (7, 3)) is None
    assert coordinated.named(OPEN, 8, 2, (7, 3)) is not None
    assert coordinated.named(None, 8, 2, (7, 3)) is None


def test_a_producer_that_was_replaced_gets_no_epoch() -> None:
    """Only the producer of the current epoch may go on, or repeat its request for that epoch."""
    repeatable = OPEN._replace(last_epoch=1)
    assert coordinated.named(OPEN, 7, 1, (7, 3)) is not None
    assert coordinated.named(repeatable, 7, 1, (7, 2)) is None
    assert coordinated.named(repeatable, 7, 0, (7, 3)) is not None
    assert coordinated.named(OPEN, 7, 5, (7, 3)) is not None
    assert coordinated.named(OPEN, 7, 2, (9, 0)) is None  # with a new producer id
    assert coordinated.named(OPEN._replace(epoch=-1), 7, 5, (7, 0)) is None


def test_added_partitions_stay_in_the_transaction() -> None:
    """Once it is decided, its partitions are removed one after the other."""
    assert coordinated.missing(OPEN, {"t-0"}) is None
    assert coordinated.missing(OPEN, {"t-0", "t-1"}) is not None
    assert coordinated.missing(OPEN._replace(state="PREPARE_COMMIT"), {"t-1"}) is None


@pytest.mark.parametrize(
    ("member", "instance", "now", "is_wrong"),
    [
        ("a", None, {"a": None}, True),
        ("a", None, {"b": "i"}, False),
        ("b", "i", {"b": "i"}, True),
        ("", "i", {"b": "i"}, True),
        ("", "i", {"c": "i"}, False),  # another one has joined since
        ("", "j", {"a": None, "b": "i"}, False),
        ("old", "i", {"a": None}, True),  # b has its instance id
        ("old", "j", {"a": None}, False),
    ],
)
def test_a_member_that_has_left(
    member: str, instance: str | None, now: dict[str, str | None], is_wrong: bool
) -> None:
    """It is named by its member id, or by its instance id alone."""
    before = Group(STABLE, 3, {"a": None, "b": "i"})
    found = coordinated.stays(before, before._replace(members=now), member, instance)
    assert (found is not None) == is_wrong
