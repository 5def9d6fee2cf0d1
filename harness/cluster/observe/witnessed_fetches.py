"""Passes what simulated coordinators return of offsets to `checkers.invariants.fetched_offsets`."""

from collections.abc import Callable, Iterator
from typing import Any

from broker_impl.coordinator.groups.group import Group
from broker_impl.node.broker import Broker
from broker_impl.wire.messages.offset_commit_request import OffsetCommitRequest
from broker_impl.wire.messages.offset_fetch_request import OffsetFetchRequest
from broker_impl.wire.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from broker_impl.wire.types import TopicPartition
from checkers.invariants import fetched_offsets
from checkers.invariants.fetched_offsets import Commit, Commits
from harness.cluster.observe.reporter import Reporter

OnAnswer = Callable[[Any], None]


class FetchWitness:
    """Sees commits and requests for offsets to one life of a broker.

    Args:
        reporter: reports violations in the broker's answers.
        broker: the broker.
        commits: what all brokers have received.
    """

    def __init__(self, reporter: Reporter, broker: Broker, commits: Commits) -> None:
        self._reporter = reporter
        self._broker = broker
        self._commits = commits

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        match request:
            case OffsetCommitRequest() | TxnOffsetCommitRequest():
                for name, row in rows(request.topics):
                    self._commits.sent(
                        (request.group_id, name), _commit(row, row.committed_metadata)
                    )
            case OffsetFetchRequest():
                return lambda answer: self._fetched(request, answer)
            case _:
                pass
        return None

    def _fetched(self, request: OffsetFetchRequest, answer: Any) -> None:
        if not request.groups:
            if not answer.error_code:
                self._of_group(request.group_id, request.topics is None, answer.topics)
            return
        everything = {asked.group_id for asked in request.groups if asked.topics is None}
        for found in answer.groups:
            if not found.error_code:
                self._of_group(found.group_id, found.group_id in everything, found.topics)

    def _of_group(self, group: str, is_all: bool, topics: Any) -> None:
        returned = set()
        for name, row in rows(topics):
            returned.add(name)
            if row.error_code or row.committed_offset < 0:
                continue
            why = self._commits.other((group, name), _commit(row, row.metadata))
            self._found(group, name, why)
        if is_all:
            stored = self._stored(group)
            self._found(group, "all partitions", fetched_offsets.lacking(stored, returned))

    def _stored(self, group: str) -> set[str]:
        """Return the partitions whose offsets the coordinator has; with ACLs some may be hidden."""
        found = self._broker.groups.find(group)
        if not isinstance(found, Group) or self._broker.security.authorizer is not None:
            return set()
        return {str(tp) for tp in found.offsets}

    def _found(self, group: str, about: str, why: str | None) -> None:
        self._reporter.found("fetched-as-committed", why, about=f"group {group}, {about}")


def _commit(row: Any, metadata: str | None) -> Commit:
    return Commit(row.committed_offset, row.committed_leader_epoch, metadata or "")


def rows(topics: Any) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a request or an answer about offsets, each with its partition."""
    for topic in topics or ():
        for row in topic.partitions:
            yield str(TopicPartition(topic.name, row.partition_index)), row
