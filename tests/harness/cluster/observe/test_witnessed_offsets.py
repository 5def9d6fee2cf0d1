"""Offsets that coordinators return are compared with the deletions of groups and topics."""

import itertools
from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.api.cluster_view import BEING_DELETED
from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.groups.members import GroupConfig
from broker_impl.log.epochs import EpochStart, LeaderEpochs
from broker_impl.replica.events import Role
from broker_impl.wire.messages.delete_groups_request import DeleteGroupsRequest
from broker_impl.wire.messages.offset_commit_request import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from broker_impl.wire.messages.offset_fetch_request import OffsetFetchRequest
from broker_impl.wire.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from broker_impl.wire.messages.update_metadata_request import (
    UpdateMetadataPartitionState,
    UpdateMetadataRequest,
    UpdateMetadataTopicState,
)
from broker_impl.wire.types import TopicPartition
from checkers.invariants.deleted_offsets import CommittedOffsets
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_offsets import OffsetWitness

OFFSETS = TopicPartition("__consumer_offsets", 3)
MS = 1_000_000


class Coordinator:
    """A broker that coordinates the group g; the test makes up its answers."""

    def __init__(self, offsets: CommittedOffsets | None = None) -> None:
        numbers = itertools.count(1)
        self.group: Any = Group("g", GroupConfig(), lambda: next(numbers), 0)
        self.log = SimpleNamespace(
            offline=None, end_offset=10, epochs=LeaderEpochs([EpochStart(2, 0), EpochStart(5, 8)])
        )
        self.home = SimpleNamespace(
            role=Role.LEADER,
            log=self.log,
            high_watermark=10,
            leader_epoch=5,
            zk_version=1,
            isr=frozenset({1, 2}),
            maximal_isr=frozenset({1, 2}),
            isr_min=2,
        )
        self.now_ms = 0
        self.found: list[str] = []
        broker: Any = SimpleNamespace(
            config=SimpleNamespace(offsets_commit_timeout_ms=1000),
            replicas=SimpleNamespace(partitions={OFFSETS: self.home}),
            groups=SimpleNamespace(partition_of=lambda name: OFFSETS, find=lambda name: self.group),
        )
        self.offsets = CommittedOffsets() if offsets is None else offsets
        self.witness = OffsetWitness(
            Reporter(
                1,
                lambda: self.now_ms * MS,
                lambda violation: self.found.append(violation.invariant),
            ),
            broker,
            self.offsets,
        )

    def answer(self, request: Any, **answer: Any) -> list[str]:
        """Answer a request with these fields, and let time pass; return the violations."""
        self.found.clear()
        on_answer = self.witness(request)
        if on_answer is not None:
            on_answer(SimpleNamespace(**{"error_code": 0, **answer}))
        self.now_ms += 10
        return list(self.found)

    def commit(self, offset: int, code: int = 0) -> None:
        """Answer a commit of x-0."""
        row = OffsetCommitRequestPartition(0, offset)
        request = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("x", [row])])
        self.answer(request, topics=_topics(error_code=code))

    def delete(self, code: int = 0) -> None:
        """Answer the deletion of the group."""
        rows = [SimpleNamespace(group_id="g", error_code=code)]
        self.answer(DeleteGroupsRequest(groups_names=["g"]), results=rows)

    def topic_gone(self, *, leader: int = BEING_DELETED, code: int = 0) -> None:
        """Answer an update of x-0."""
        self.answer(_update(leader), error_code=code)

    def fetch(self, offset: int, code: int = 0) -> list[str]:
        """Answer a request for the offset of x-0; return the violations."""
        topics = _topics(error_code=code, committed_offset=offset)
        return self.answer(OffsetFetchRequest(group_id="g"), topics=topics)

    def fetch_v8(self, offset: int) -> list[str]:
        """The same in the form for several groups."""
        topics = _topics(error_code=0, committed_offset=offset)
        groups: Any = [SimpleNamespace(group_id="g", topics=topics)]
        return self.answer(OffsetFetchRequest(groups=groups), topics=[], groups=groups)


def _topics(**row: Any) -> list[Any]:
    return [SimpleNamespace(name="x", partitions=[SimpleNamespace(partition_index=0, **row)])]


def _update(leader: int) -> UpdateMetadataRequest:
    state = UpdateMetadataPartitionState(partition_index=0, leader=leader)
    topic = UpdateMetadataTopicState(topic_name="x", partition_states=[state])
    return UpdateMetadataRequest(topic_states=[topic])


def test_offsets_end_with_their_group() -> None:
    """No offset, an error, and an offset that was committed later are right answers."""
    coordinator = Coordinator()
    coordinator.commit(7)
    assert coordinator.fetch(7) == []
    coordinator.delete()
    assert coordinator.fetch(-1) == []
    assert coordinator.fetch(7, code=16) == []
    assert coordinator.fetch(7) == ["deleted-offset-returned"]
    assert coordinator.fetch_v8(7) == ["deleted-offset-returned"]
    coordinator.commit(8)
    assert coordinator.fetch(8) == []
    assert coordinator.fetch(7) == ["deleted-offset-returned"]


def test_a_group_that_is_not_deleted_keeps_its_offsets() -> None:
    """The deletion was refused."""
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.delete(code=68)
    assert coordinator.fetch(7) == []


def test_commits_whose_outcome_is_unknown_may_take_effect_later() -> None:
    """They were refused, not answered, or belong to a transaction."""
    coordinator = Coordinator()
    coordinator.commit(7, code=15)
    row = OffsetCommitRequestPartition(0, 8)
    coordinator.witness(OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("x", [row])]))
    transactional = TxnOffsetCommitRequestTopic("x", [TxnOffsetCommitRequestPartition(0, 9)])
    coordinator.answer(TxnOffsetCommitRequest(group_id="g", topics=[transactional]))
    coordinator.delete()
    assert [coordinator.fetch(offset) for offset in (7, 8, 9)] == [[], [], []]


def test_a_request_that_was_sent_before_may_be_answered_with_the_offset() -> None:
    """It arrives before the deletion is acknowledged."""
    coordinator = Coordinator()
    coordinator.commit(7)
    on_answer: Any = coordinator.witness(OffsetFetchRequest(group_id="g"))
    coordinator.delete()
    on_answer(SimpleNamespace(topics=_topics(error_code=0, committed_offset=7)))
    assert coordinator.found == []


def test_later_coordinators_know_of_the_deletion_if_their_log_has_it() -> None:
    """A former coordinator does not, nor one whose log was lost in a power failure."""
    first = Coordinator()
    first.commit(7)
    first.delete()
    later = Coordinator(first.offsets)
    later.now_ms, later.log.end_offset, later.home.leader_epoch = 1000, 12, 6
    later.log.epochs.assign(6, 10)
    assert later.fetch(7) == ["deleted-offset-returned"]
    former = Coordinator(first.offsets)
    former.now_ms, former.log.epochs = 1000, LeaderEpochs([EpochStart(2, 0)])
    assert former.fetch(7) == []
    short = Coordinator(first.offsets)
    short.now_ms, short.log.end_offset = 1000, 9
    assert short.fetch(7) == []
    follower = Coordinator(first.offsets)
    follower.now_ms, follower.home.role = 1000, Role.FOLLOWER
    assert follower.fetch(7) == []


def test_offsets_end_with_their_topic() -> None:
    """The coordinator has heard of the deletion and committed what it wrote then."""
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.topic_gone()
    assert coordinator.fetch(7) == [], "not known to be committed before this request"
    assert coordinator.fetch(7) == ["deleted-offset-returned"]
    assert coordinator.fetch(-1) == []


@pytest.mark.parametrize(
    ("leader", "code"),
    [(2, 0), (BEING_DELETED, 11)],
)
def test_other_updates_delete_nothing(leader: int, code: int) -> None:
    """The partition has a leader, or the update comes from a former controller."""
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.topic_gone(leader=leader, code=code)
    assert [coordinator.fetch(7), coordinator.fetch(7)] == [[], []]


def test_tombstones_of_a_topic_may_not_be_written() -> None:
    """Too few replicas are in sync, or this broker does not coordinate the group."""
    alone = Coordinator()
    alone.commit(7)
    alone.home.isr = frozenset({1})
    loading = Coordinator()
    loading.commit(7)
    loading.group = None
    for coordinator in (alone, loading):
        coordinator.topic_gone()
        assert [coordinator.fetch(7), coordinator.fetch(7)] == [[], []]


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("role", Role.FOLLOWER),
        ("leader_epoch", 6),
        ("zk_version", 2),
        ("maximal_isr", frozenset({1, 2, 3})),
    ],
)
def test_the_write_of_tombstones_may_fail_when_leader_or_isr_change(field: str, value: Any) -> None:
    """The tombstones are not committed yet, and then another state holds."""
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.home.high_watermark = 9
    coordinator.topic_gone()
    was = getattr(coordinator.home, field)
    setattr(coordinator.home, field, value)
    coordinator.fetch(-1)
    setattr(coordinator.home, field, was)
    coordinator.home.high_watermark = 10
    assert [coordinator.fetch(7), coordinator.fetch(7)] == [[], []]


@pytest.mark.parametrize(("later_ms", "is_found"), [(200, True), (300, False)])
def test_the_write_of_tombstones_may_take_too_long(later_ms: int, *, is_found: bool) -> None:
    """They are committed within a quarter of the time that a write may take, or later."""
    coordinator = Coordinator()
    coordinator.commit(7)
    coordinator.home.high_watermark = 9
    coordinator.topic_gone()
    assert coordinator.fetch(7) == []
    coordinator.now_ms += later_ms
    coordinator.home.high_watermark = 10
    assert coordinator.fetch(7) == []
    assert coordinator.fetch(7) == (["deleted-offset-returned"] if is_found else [])


def test_a_commit_during_the_deletion_of_its_topic_is_not_judged() -> None:
    """It was sent before the update and is acknowledged after it."""
    coordinator = Coordinator()
    row = OffsetCommitRequestPartition(0, 7)
    request = OffsetCommitRequest("g", topics=[OffsetCommitRequestTopic("x", [row])])
    on_commit: Any = coordinator.witness(request)
    on_update: Any = coordinator.witness(_update(BEING_DELETED))
    assert on_update is not None
    on_commit(SimpleNamespace(topics=_topics(error_code=0)))
    on_update(SimpleNamespace(error_code=0))
    coordinator.now_ms += 10
    assert [coordinator.fetch(7), coordinator.fetch(7)] == [[], []]
