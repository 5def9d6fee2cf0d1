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
from model.violation import Violation

OnAnswer = Callable[[Any], None]


class FetchWitness:
    """Sees commits and requests for offsets to one life of a broker.

    Args:
        number: the broker's id.
        broker: the broker.
        commits: what all brokers have received.
        now_ns: returns the history's time.
        report: is called with each violation.
    """

    def __init__(
        self,
        number: int,
        broker: Broker,
        commits: Commits,
        *,
        now_ns: Callable[[], int],
        report: Callable[[Violation], None],
    ) -> None:
        self._number = number
        self._broker = broker
        self._commits = commits
        self._now_ns = now_ns
        self._report = report

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
        if why is not None:
            self._report(
                Violation(
                    invariant="fetched-as-committed",
                    time_ns=self._now_ns(),
                    brokers=(self._number,),
                    why=f"broker {self._number}, group {group}, {about}: {why}",
                )
            )


def _commit(row: Any, metadata: str | None) -> Commit:
    return Commit(row.committed_offset, row.committed_leader_epoch, metadata or "")


def rows(topics: Any) -> Iterator[tuple[str, Any]]:
    """Yield the rows of a request or an answer about offsets, each with its partition."""
    for topic in topics or ():
        for row in topic.partitions:
            yield str(TopicPartition(topic.name, row.partition_index)), row
