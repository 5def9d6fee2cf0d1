"""A leader on a disk in memory that answers the fetches of readers, with sessions or without."""

import random
from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import msgspec

from broker_impl.api.fetch import fetch
from broker_impl.api.fetch_sessions.cache import FetchSessions
from broker_impl.api.registry import RequestContext
from broker_impl.counts import Counts
from broker_impl.errors import ErrorCode
from broker_impl.replica.events import Effect, WriteIsr, changes_reads_of
from broker_impl.wire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from broker_impl.wire.messages.fetch_response import FetchResponse, PartitionData
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.replica.conftest import Broker

ROOM = 1 << 20


class Leader:
    """Broker 1 with its fetch sessions."""

    def __init__(self, slots: int = 10) -> None:
        self.broker = Broker()
        self.sessions = FetchSessions(
            slots,
            random.Random(1),
            lambda tp, event: self.replicas.follower_kept_up(tp, event),
            lambda number: None,
        )
        self.replicas = self.broker.replicas
        self.replicas.on_effect = self.on_effect
        self.writes: dict[TopicPartition, WriteIsr] = {}
        self.reads: list[TopicPartition] = []
        self._fetch = self.replicas.fetch
        self.replicas.fetch = self._counted  # type: ignore[method-assign]
        config = SimpleNamespace(fetch_max_bytes=ROOM, replica_selector_class="")
        view = SimpleNamespace(not_here=lambda tp: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        services: Any = SimpleNamespace(
            counts=Counts(),
            config=config,
            replicas=self.replicas,
            sessions=self.sessions,
            view=view,
            quotas=SimpleNamespace(leading=SimpleNamespace(throttles=lambda tp: False)),
        )
        self.context = RequestContext(services, "", None, "", 0, 12, lambda: ROOM)

    def on_effect(self, effect: Effect) -> None:
        changed = changes_reads_of(effect)
        if changed is not None:
            self.sessions.changed(changed)
        if isinstance(effect, WriteIsr):
            self.writes[effect.tp] = effect

    def _counted(self, tp: TopicPartition, **asked: Any) -> Any:
        self.reads.append(tp)
        return self._fetch(tp, **asked)

    def answer(self, request: FetchRequest) -> FetchResponse:
        """Answer a fetch that does not wait."""
        answer = fetch(self.context, request)
        assert isinstance(answer, FetchResponse)
        return answer


class Reader:
    """A client or a follower that fetches incrementally, and remembers what it was sent."""

    def __init__(self, replica_id: int = -1) -> None:
        self.replica_id = replica_id
        self.isolation = 0
        self.session = (0, 0)
        self.rows: dict[TopicPartition, FetchPartition] = {}
        """What it fetches."""
        self.held: dict[TopicPartition, FetchPartition] = {}
        """What its session holds."""
        self.known: dict[TopicPartition, PartitionData] = {}
        """What it was sent of each partition, without records."""

    def put(self, tp: TopicPartition, **changes: Any) -> None:
        """Fetch a partition, or change how it is fetched."""
        row = self.rows.get(tp) or FetchPartition(
            partition=tp.partition, partition_max_bytes=ROOM, log_start_offset=0
        )
        self.rows[tp] = msgspec.structs.replace(row, **changes)

    def leave(self, tp: TopicPartition) -> None:
        """Fetch a partition no longer."""
        self.rows.pop(tp, None)

    def start_over(self) -> None:
        """Have the next request begin a new session, as after a lost response."""
        self.session = (self.session[0], 0)

    def incremental(self, max_bytes: int = ROOM) -> FetchRequest:
        """The next request of the session; a full one if there is none."""
        number, epoch = self.session
        if not epoch:
            self.held, self.known = {}, {}
        new = {tp: row for tp, row in self.rows.items() if self.held.get(tp) != row}
        gone = [tp for tp in self.held if tp not in self.rows]
        known = {tp: data for tp, data in self.known.items() if self._still_knows(tp)}
        self.held, self.known = dict(self.rows), known
        return self._request(new, gone, number, epoch, max_bytes)

    def _still_knows(self, tp: TopicPartition) -> bool:
        """Whether the reader keeps what it was sent: a follower may ignore it in a new epoch."""
        row, held = self.rows.get(tp), self.held[tp]
        return row is not None and row.current_leader_epoch == held.current_leader_epoch

    def full(self, max_bytes: int = ROOM) -> FetchRequest:
        """The request for the same without a session."""
        return self._request(self.rows, [], 0, -1, max_bytes)

    def _request(
        self,
        rows: Mapping[TopicPartition, FetchPartition],
        gone: list[TopicPartition],
        number: int,
        epoch: int,
        max_bytes: int,
    ) -> FetchRequest:
        return FetchRequest(
            replica_id=self.replica_id,
            isolation_level=self.isolation,
            max_bytes=max_bytes,
            session_id=number,
            session_epoch=epoch,
            topics=[FetchTopic(topic=tp.topic, partitions=[row]) for tp, row in rows.items()],
            forgotten_topics_data=[
                ForgottenTopic(topic=tp.topic, partitions=[tp.partition]) for tp in gone
            ],
        )

    def take(self, response: FetchResponse) -> dict[TopicPartition, bytes]:
        """Remember a response, and return the records of each partition that has any."""
        if response.error_code or not response.session_id:
            self.session = (0, 0)
        elif self.session[1]:
            self.session = (response.session_id, self.session[1] + 1)
        else:
            self.session = (response.session_id, 1)
        records = {}
        for tp, data in rows_of(response).items():
            self.known[tp] = without_records(data)
            if data.records:
                records[tp] = bytes_of(data)
        return records


def rows_of(response: FetchResponse) -> dict[TopicPartition, PartitionData]:
    """The partitions of a response, in its order."""
    return {
        TopicPartition(topic.topic, row.partition_index): row
        for topic in response.responses
        for row in topic.partitions
    }


def without_records(data: PartitionData) -> PartitionData:
    """What a response says of a partition besides its records."""
    return msgspec.structs.replace(data, records=None, aborted_transactions=None)


def bytes_of(data: PartitionData) -> bytes:
    """The records of a partition in a response."""
    return b"".join(bytes(part) for part in data.records or ())
