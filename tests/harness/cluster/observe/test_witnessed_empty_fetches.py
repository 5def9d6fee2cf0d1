"""Fetches without records are compared with what was readable when they arrived."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.replica.events import Role
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.list_offsets_request import ListOffsetsRequest
from broker_impl.wire.types import TopicPartition
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.witnessed_empty_fetches import EmptyFetchWitness

T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


class Broker:
    """A broker that leads two partitions, and has one fetch session."""

    def __init__(self) -> None:
        self.partitions: dict[TopicPartition, Any] = {T0: _leader(5, 3), T1: _leader(5, 5)}
        self.replicas = SimpleNamespace(partitions=self.partitions)
        asked = SimpleNamespace(fetch_offset=4)
        session = SimpleNamespace(partitions={T1: SimpleNamespace(asked=asked)})
        self.sessions = SimpleNamespace(find={7: session}.get)


def _leader(high_watermark: int, stable: int) -> Any:
    log = SimpleNamespace(start_offset=1, first_dirty=0, offline=None)
    return SimpleNamespace(
        role=Role.LEADER, log=log, high_watermark=high_watermark, last_stable_offset=stable
    )


def fetch(offset: int, **fields: Any) -> FetchRequest:
    asked = FetchPartition(partition=0, fetch_offset=offset)
    return FetchRequest(topics=[FetchTopic(topic="t", partitions=[asked])], **fields)


def found(broker: Any, request: Any, *rows: Any, error_code: int = 0) -> list[str | None]:
    """Answer a request with these rows; return the partitions of the violations."""
    keys: list[str | None] = []
    reporter = Reporter(1, lambda: 0, lambda each: keys.append(each.key))
    on_answer = EmptyFetchWitness(reporter, broker)(request)
    assert on_answer is not None
    topic = SimpleNamespace(topic="t", partitions=rows)
    on_answer(SimpleNamespace(error_code=error_code, responses=[topic]))
    return keys


def row(*, records: Any = (), error_code: int = 0) -> Any:
    return SimpleNamespace(error_code=error_code, records=records)


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


@pytest.mark.parametrize("answer", [row(records=[b"batch"]), row(error_code=6)])
def test_other_answers_are_not_judged(answer: Any) -> None:
    """Records of some partitions may have left no room for others."""
    assert found(Broker(), fetch(4), answer) == []
    assert found(Broker(), fetch(4), error_code=70) == []


def test_other_readers_are_not_judged() -> None:
    """Followers, consumers that may be sent to another replica, and those of a former leader, nor
    readers of what was compacted."""
    broker: Any = Broker()
    witness = EmptyFetchWitness(Reporter(1, lambda: 0, lambda _: None), broker)
    assert witness(fetch(4, replica_id=2)) is None
    assert witness(fetch(4, rack_id="r1")) is None
    assert witness(ListOffsetsRequest()) is None
    broker.partitions[T0].log.first_dirty = 5
    assert found(broker, fetch(4)) == []
    broker.partitions[T0].log.first_dirty = 0
    broker.partitions[T0].role = Role.FOLLOWER
    assert found(broker, fetch(4)) == []
