"""Fetches without records are compared with what was readable when they arrived."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.replica.events import Role
from broker_impl.wire.messages.fetch_request import (
    FetchPartition,
    FetchRequest,
    FetchTopic,
    ForgottenTopic,
)
from broker_impl.wire.messages.list_offsets_request import ListOffsetsRequest
from broker_impl.wire.types import TopicPartition
from harness.cluster.observe import witnessed_empty_fetches
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_empty_fetches import EmptyFetchWitness

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Broker:
    """A broker that leads two partitions, and has one fetch session."""

    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, Any] = {T0: _leader(5, 3), T1: _leader(5, 5)}
        self.replicas = SimpleNamespace(partitions=self.partitions)
        asked = SimpleNamespace(fetch_offset=4, partition_max_bytes=100)
        session = SimpleNamespace(partitions={T1: SimpleNamespace(asked=asked)})
        self.sessions = SimpleNamespace(find={7: session}.get)
        self.config = SimpleNamespace(fetch_max_bytes=1000)


def _leader(high_watermark: int, stable: int) -> Any:
    log = SimpleNamespace(start_offset=1, offline=None)
    return SimpleNamespace(
        role=Role.LEADER, log=log, high_watermark=high_watermark, last_stable_offset=stable
    )


def fetch(offset: int, **fields: Any) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=100)
    return FetchRequest(topics=[FetchTopic(topic="t", partitions=[asked])], **fields)


@pytest.fixture(autouse=True)
def _batches(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each log has batches of one record, of 60 bytes; before offset 3 they are empty."""

    class Headers:
        def __init__(self, log: Any) -> None:
            pass

        def read(self, peek: Any) -> list[Any]:
            return [
                SimpleNamespace(next_offset=each + 1, size=60 if each > 2 else 1, count=each // 3)
                for each in range(20)
            ]

    monkeypatch.setattr(witnessed_empty_fetches, "LogHeaders", Headers)


def found(broker: Any, request: Any, *rows: Any, error_code: int = 0) -> list[str | None]:
    """Answer a request with these rows; return the partitions of the violations."""
    keys: list[str | None] = []
    reporter = Reporter(1, lambda: 0, lambda each: keys.append(each.key))
    peek: Any = None
    on_answer = EmptyFetchWitness(reporter, broker, peek)(request)
    assert on_answer is not None
    topic = SimpleNamespace(topic="t", partitions=rows)
    on_answer(SimpleNamespace(error_code=error_code, responses=[topic]))
    return keys


def row(*, partition: int = 0, records: Any = (), error_code: int = 0, diverges: int = -1) -> Any:
    return SimpleNamespace(
        partition_index=partition,
        error_code=error_code,
        records=records,
        diverging_epoch=SimpleNamespace(end_offset=diverges),
    )


def test_an_empty_answer_is_judged_by_the_isolation_level() -> None:
    """A consumer that reads only committed transactions may wait for one."""
    assert found(Broker(), fetch(4)) == ["t-0"]
    assert found(Broker(), fetch(4), row()) == ["t-0"]
    assert found(Broker(), fetch(4, isolation_level=1)) == []
    assert found(Broker(), fetch(5)) == []


def test_all_partitions_of_a_session_are_judged() -> None:
    """Although the request does not name them."""
    assert found(Broker(), FetchRequest(session_id=7, session_epoch=2)) == ["t-1"]
    assert found(Broker(), FetchRequest(session_id=8, session_epoch=2)) == []
    assert found(Broker(), FetchRequest(session_id=7, session_epoch=-1)) == []
    forgotten = [ForgottenTopic(topic="t", partitions=[1])]
    request = FetchRequest(session_id=7, session_epoch=2, forgotten_topics_data=forgotten)
    assert found(Broker(), request) == []


def test_a_partition_may_have_no_room() -> None:
    """If another one has records."""
    other = row(records=[b"b" * 60])
    for max_bytes, keys in ((120, ["t-1"]), (119, [])):
        request = FetchRequest(session_id=7, session_epoch=2, max_bytes=max_bytes)
        assert found(Broker(), request, other) == keys
    assert found(Broker(), FetchRequest(session_id=7, session_epoch=2, max_bytes=1)) == ["t-1"]


def test_the_next_batch_with_records_counts() -> None:
    """A batch that compaction has emptied is smaller, and is not sent."""
    other = row(partition=1, records=[b"b" * 60])
    for max_bytes, keys in ((120, ["t-0"]), (119, [])):
        assert found(Broker(), fetch(1, max_bytes=max_bytes), other) == keys


@pytest.mark.parametrize("answer", [row(records=[b"batch"]), row(error_code=6), row(diverges=3)])
def test_other_answers_are_not_judged(answer: Any) -> None:
    """An error is a reason, and so is an epoch that diverges (KIP-595)."""
    assert found(Broker(), fetch(4), answer) == []
    assert found(Broker(), fetch(4), error_code=70) == []


def test_other_readers_are_not_judged() -> None:
    """Followers, consumers that may be sent to another replica, and those of a former leader."""
    broker: Any = Broker()
    peek: Any = None
    witness = EmptyFetchWitness(Reporter(1, lambda: 0, lambda _: None), broker, peek)
    assert witness(fetch(4, replica_id=2)) is None
    assert witness(fetch(4, rack_id="r1")) is None
    assert witness(ListOffsetsRequest()) is None
    broker.partitions[T0].role = Role.FOLLOWER
    assert found(broker, fetch(4)) == []
