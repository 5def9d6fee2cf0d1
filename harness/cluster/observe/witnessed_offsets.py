"""Passes the committed offsets of simulated coordinators to `checkers.invariants.deleted_offsets`.

The deletion of a group is complete once it is acknowledged. Offsets of a deleted topic are deleted
without an acknowledgement: when the controller's UpdateMetadata reports the deletion, each
coordinator writes their tombstones. The witness waits until all that the coordinator's log had then
is committed, without a change of leadership or ISR that could have made the write fail, and in less
time than a write may take.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final, NamedTuple

from broker_impl.api.cluster_view import BEING_DELETED
from broker_impl.coordinator.groups.group import Group
from broker_impl.node.broker import Broker
from broker_impl.wire.messages.delete_groups_request import DeleteGroupsRequest
from broker_impl.wire.messages.offset_commit_request import OffsetCommitRequest
from broker_impl.wire.messages.offset_fetch_request import OffsetFetchRequest
from broker_impl.wire.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from broker_impl.wire.messages.update_metadata_request import UpdateMetadataRequest
from broker_impl.wire.types import TopicPartition
from checkers.invariants import deleted_offsets
from checkers.invariants.deleted_offsets import (
    CommittedOffsets,
    Deletion,
    Key,
    Standing,
)
from harness.cluster.observe.coordinator_logs import Leading, epoch_at, last_before, leadership
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_fetches import rows

PROMPT: Final = 0.25
"""The part of ``offsets.commit.timeout.ms`` in which tombstones must be committed to be judged; a
broker's clock may be too fast."""
OnAnswer = Callable[[Any], None]


class _Tombstones(NamedTuple):
    """Tombstones that a coordinator must have appended, and that may not be committed yet."""

    home: TopicPartition
    leading: Leading
    end: int
    """The end of the coordinator's log after them."""
    until_ns: int
    """The time after which their write may have failed."""
    standing: Standing
    """The offsets that they delete."""


def being_deleted(request: UpdateMetadataRequest) -> set[str]:
    """Return the partitions that are being deleted, as a broker learns it from a controller."""
    return {
        str(TopicPartition(topic.topic_name, state.partition_index))
        for topic in request.topic_states
        for state in topic.partition_states
        if state.leader == BEING_DELETED
    }


class OffsetWitness:
    """Sees commits, deletions and requests for offsets to one life of a broker.

    Args:
        reporter: reports violations in the broker's answers.
        broker: the broker.
        offsets: what all brokers have accepted.
    """

    def __init__(self, reporter: Reporter, broker: Broker, offsets: CommittedOffsets) -> None:
        self._reporter = reporter
        self._broker = broker
        self._offsets = offsets
        self._now_ns = reporter.now_ns
        self._awaited: list[_Tombstones] = []

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        if self._awaited:
            self._look()
        match request:
            case OffsetCommitRequest():
                return self._commit(request)
            case TxnOffsetCommitRequest():
                self._sent(request)
            case DeleteGroupsRequest():
                standing = self._offsets.of_groups(request.groups_names)
                return lambda answer: self._groups_deleted(standing, answer)
            case UpdateMetadataRequest():
                return self._updated(request)
            case OffsetFetchRequest():
                asked_ns = self._now_ns()
                return lambda answer: self._fetched(request, asked_ns, answer)
            case _:
                pass
        return None

    # Commits.

    def _sent(self, request: OffsetCommitRequest | TxnOffsetCommitRequest) -> dict[Key, int]:
        offsets = {
            (request.group_id, name): row.committed_offset for name, row in rows(request.topics)
        }
        for key, offset in offsets.items():
            self._offsets.sent(key, offset)
        return offsets

    def _commit(self, request: OffsetCommitRequest) -> OnAnswer:
        sent = self._sent(request)

        def on_answer(answer: Any) -> None:
            for name, row in rows(answer.topics):
                key = request.group_id, name
                if not row.error_code and key in sent:
                    self._offsets.accepted(key, sent.pop(key))

        return on_answer

    # Deletions.

    def _groups_deleted(self, standing: Standing, answer: Any) -> None:
        for row in answer.results:
            leading = self._leading(self._home(row.group_id))
            if row.error_code or leading is None:
                continue
            last = last_before(leading.partition, leading.partition.high_watermark)
            if last is not None:
                of_group = {key: each for key, each in standing.items() if key[0] == row.group_id}
                self._offsets.delete(of_group, Deletion("group", self._now_ns(), last))

    def _updated(self, request: UpdateMetadataRequest) -> OnAnswer | None:
        gone = being_deleted(request)
        if not gone:
            return None
        before = self._coordinated(self._offsets.of_partitions(gone))

        def on_answer(answer: Any) -> None:
            if not answer.error_code:
                self._topics_deleted(before)

        return on_answer

    def _coordinated(self, standing: Standing) -> dict[Key, tuple[Leading, Mapping[int, int]]]:
        """Return the offsets of groups that this broker coordinates, with its leadership."""
        found = {}
        for (group, partition), offsets in standing.items():
            leading = self._leading(self._home(group))
            if leading is not None and isinstance(self._broker.groups.find(group), Group):
                found[group, partition] = leading, offsets
        return found

    def _topics_deleted(self, before: dict[Key, tuple[Leading, Mapping[int, int]]]) -> None:
        """Wait for the tombstones of these offsets, if this broker still coordinates the groups."""
        timeout_ns = self._broker.config.offsets_commit_timeout_ms * 1_000_000
        until_ns = self._now_ns() + int(timeout_ns * PROMPT)
        for key, (leading, offsets) in before.items():
            home, partition = self._home(key[0]), leading.partition
            if self._leading(home) == leading and len(leading.isr) >= partition.isr_min:
                end = partition.log.end_offset
                self._awaited.append(_Tombstones(home, leading, end, until_ns, {key: offsets}))

    def _look(self) -> None:
        """Look which tombstones are committed since."""
        now_ns = self._now_ns()
        awaited, self._awaited = self._awaited, []
        for each in awaited:
            partition = each.leading.partition
            if now_ns > each.until_ns or self._leading(each.home) != each.leading:
                continue
            if partition.high_watermark < each.end:
                self._awaited.append(each)
            elif (last := last_before(partition, each.end)) is not None:
                self._offsets.delete(each.standing, Deletion("topic", now_ns, last))

    # Requests for offsets.

    def _fetched(self, request: OffsetFetchRequest, asked_ns: int, answer: Any) -> None:
        groups = [(request.group_id, answer.topics)]
        if request.groups:
            groups = [(group.group_id, group.topics) for group in answer.groups]
        for group, topics in groups:
            for name, row in rows(topics):
                if not row.error_code and row.committed_offset >= 0:
                    self._returned(group, name, row.committed_offset, asked_ns)

    def _returned(self, group: str, name: str, offset: int, asked_ns: int) -> None:
        deletion = self._offsets.deletion((group, name), offset)
        if deletion is None:
            return
        leading = self._leading(self._home(group))
        if leading is None:
            return
        epoch = epoch_at(leading.partition, deletion.last.offset)
        why = deleted_offsets.returned(deletion, offset, asked_ns, epoch)
        self._reporter.found(
            "deleted-offset-returned",
            why,
            about=f"group {group}, {name}",
            epochs=(leading.epoch,),
        )

    def _home(self, group: str) -> TopicPartition:
        return self._broker.groups.partition_of(group)

    def _leading(self, home: TopicPartition) -> Leading | None:
        return leadership(self._broker, home)
