"""The librdkafka client against librdkafka's own mock brokers."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Iterator
from typing import Any, ClassVar

import pytest
from confluent_kafka import KafkaError, KafkaException, Producer

from model.op import Op
from workloads.client.common import Settings, split
from workloads.client.confluent import ConfluentClient, refusal
from workloads.idempotent import WORKLOAD

TOPIC = {"replication.factor": "3"}


@pytest.fixture(scope="module")
def bootstrap() -> Iterator[str]:
    """Three mock brokers on loopback that live as long as this producer."""
    owner = Producer({"bootstrap.servers": "replaced", "test.mock.num.brokers": 3, "log_level": 0})
    brokers = owner.list_topics(timeout=10).brokers.values()
    yield ",".join(f"{broker.host}:{broker.port}" for broker in brokers)
    del owner


@pytest.fixture
async def clients(bootstrap: str) -> AsyncIterator[Any]:
    """Makes clients, and closes them."""
    made: list[ConfluentClient] = []

    def make(process: int, servers: str = bootstrap, **producer: str) -> ConfluentClient:
        settings = {**WORKLOAD.producer, **producer}
        made.append(ConfluentClient(Settings(servers, process, settings, WORKLOAD.consumer, TOPIC)))
        return made[-1]

    yield make
    await asyncio.gather(*(client.close() for client in made))


async def ask(client: ConfluentClient, f: str, value: Any = None) -> Op:
    return await client.invoke(Op(index=0, time_ns=0, process=0, type="invoke", f=f, value=value))


async def read(client: ConfluentClient, count: int) -> dict[str, list[list[int]]]:
    """Poll until this number of records has come."""
    records: dict[str, list[list[int]]] = {}
    while sum(map(len, records.values())) < count:
        polled = await ask(client, "poll", [["poll"]])
        assert polled.type == "ok"
        for key, pairs in polled.value[0][1].items():
            records.setdefault(key, []).extend(pairs)
    return records


class Desynchronized:
    """A producer whose first record gets OUT_OF_ORDER_SEQUENCE_NUMBER.

    librdkafka raises that once, and then reports the result of the record.
    """

    def __init__(self, config: Any) -> None:
        self.waiting: list[Any] = []
        self.raised = False

    def produce(self, *_: Any, on_delivery: Any, **__: Any) -> None:
        self.waiting.append(on_delivery)

    def poll(self, _: float) -> None:
        if self.waiting and not self.raised:
            self.raised = True
            raise KafkaException(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER))
        for on_delivery in self.waiting:
            on_delivery(KafkaError(KafkaError.OUT_OF_ORDER_SEQUENCE_NUMBER), None)
        self.waiting = []
        time.sleep(0.001)

    def purge(self) -> None:
        """Do nothing: nothing is queued."""


async def test_a_fatal_error_is_doubt_about_the_record(
    clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A producer with a fatal error still reports the results of its records, and can be closed."""
    monkeypatch.setattr("workloads.client.confluent_writer.Producer", Desynchronized)
    client = clients(0, "nowhere:1")
    sent = await asyncio.wait_for(ask(client, "send", [["send", "a-0", 1]]), 5)
    assert (sent.type, sent.error) == ("info", "OUT_OF_ORDER_SEQUENCE_NUMBER")
    assert not client.alive
    await asyncio.wait_for(client.close(), 5)


@pytest.mark.slow
async def test_what_is_sent_is_read(clients: Any) -> None:
    """Sends report offsets, polls return the values, and the reader knows when it has caught up."""
    writer, reader = clients(0), clients(1)
    sent = await ask(writer, "send", [["send", "a-0", number] for number in range(3)])
    assert (sent.type, sent.value) == ("ok", [["send", "a-0", [n, n]] for n in range(3)])
    assert writer.alive
    assert (await ask(reader, "assign", ["a-0"])).type == "ok"
    behind = await ask(reader, "catch-up", [["catch-up", "a-0"]])
    assert (behind.type, behind.value) == ("fail", [["catch-up", "a-0", 0, 3]])
    assert await read(reader, 3) == {"a-0": [[n, n] for n in range(3)]}
    done = await ask(reader, "catch-up", [["catch-up", "a-0"]])
    assert (done.type, done.value) == ("ok", [["catch-up", "a-0", 3, 3]])


@pytest.mark.slow
async def test_an_assignment_keeps_the_place_in_kept_keys(clients: Any) -> None:
    """An assignment reads new partitions from the beginning, and kept ones from their position."""
    left, right, reader = clients(0), clients(1), clients(2)
    await ask(left, "send", [["send", "b-0", 0]])
    await ask(right, "send", [["send", "b-1", 0]])
    await ask(reader, "assign", ["b-0"])
    assert await read(reader, 1) == {"b-0": [[0, 0]]}
    await ask(reader, "assign", ["b-0", "b-1"])
    await ask(left, "send", [["send", "b-0", 1]])
    assert await read(reader, 2) == {"b-0": [[1, 1]], "b-1": [[0, 0]]}
    await ask(reader, "assign", ["b-1"])
    await ask(reader, "assign", ["b-1", "b-0"])
    assert await read(reader, 2) == {"b-0": [[0, 0], [1, 1]]}


class Deadlocked:
    """A consumer after librdkafka #5476: calls that need its main thread never return."""

    made: ClassVar[list["Deadlocked"]] = []

    def __init__(self, config: Any) -> None:
        self.places: list[Any] | None = None
        self.freed = threading.Event()
        self.made.append(self)

    def assign(self, places: list[Any]) -> None:
        assert self.places is None, "this call would never return, and nobody else could go on"
        self.places = places

    def close(self) -> None:
        self.freed.wait()


async def test_a_deadlocked_consumer_holds_up_nobody(
    clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each assignment has a consumer of its own, so a deadlocked one blocks no operation."""
    monkeypatch.setattr("workloads.client.confluent_reader.Consumer", Deadlocked)
    client = clients(0, "nowhere:1")
    for keys in (["a-0"], ["a-0", "b-1"]):
        assert (await asyncio.wait_for(ask(client, "assign", keys), 5)).type == "ok"
    first, second = Deadlocked.made
    assert [place.topic for place in second.places or ()] == ["a", "b"]
    second.freed.set()
    await asyncio.wait_for(client.close(), 5)
    first.freed.set()


@pytest.mark.slow
async def test_a_foreign_record_is_read_as_a_number_nobody_wrote(
    clients: Any, bootstrap: str
) -> None:
    """Foreign bytes, or a record of another partition, are read as negative numbers."""
    stranger = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    stranger.produce("c", value=b"?", partition=0)
    stranger.produce("c", key=b"c-1", value=bytes(8), partition=0)
    stranger.flush(10)
    reader = clients(0)
    await ask(reader, "assign", ["c-0"])
    records = await read(reader, 2)
    assert [value < 0 for _, value in records["c-0"]] == [True, True]


async def test_what_was_never_queued_has_failed(clients: Any) -> None:
    """A send that librdkafka itself rejects is ``fail``, and ends the process."""
    writer = clients(0)
    long = "x" * 990 + "-0"
    sent = await ask(writer, "send", [["send", long, 0]])
    assert (sent.type, sent.error) == ("fail", "_INVALID_ARG")
    assert sent.value == [["send", long, 0]]
    assert not writer.alive


@pytest.mark.slow
async def test_a_full_queue_is_doubt_about_the_whole(clients: Any) -> None:
    """A send of which one record was queued and one was refused is in doubt as a whole."""
    settings = {"queue.buffering.max.messages": "1", "delivery.timeout.ms": "300"}
    writer = clients(0, "127.0.0.1:9", **settings, **{"request.timeout.ms": "200"})
    sent = await ask(writer, "send", [["send", "f-0", 0], ["send", "f-0", 1]])
    assert (sent.type, sent.error) == ("info", "_MSG_TIMED_OUT")


@pytest.mark.slow
async def test_nobody_there_is_doubt_and_closing_does_not_wait(clients: Any) -> None:
    """A send without a response ends in info after the delivery timeout.

    A client with a send in progress closes at once.
    """
    settings = {"delivery.timeout.ms": "300", "request.timeout.ms": "200"}
    lost = clients(0, "127.0.0.1:9", **settings)
    sent = await ask(lost, "send", [["send", "e-0", 0], ["send", "e-0", 1]])
    assert (sent.type, sent.error) == ("info", "_MSG_TIMED_OUT")
    assert sent.value == [["send", "e-0", 0], ["send", "e-0", 1]]
    assert not lost.alive
    waiting = clients(1, "127.0.0.1:9")
    sending = asyncio.create_task(ask(waiting, "send", [["send", "e-0", 2]]))
    await asyncio.sleep(0.05)
    began = time.monotonic()
    await waiting.close()
    assert time.monotonic() - began < 2.0
    assert (await sending).error in ("_PURGE_QUEUE", "_PURGE_INFLIGHT")


async def test_a_crash_is_doubt(clients: Any) -> None:
    """A planned crash ends in info, so that the interpreter retires the process."""
    crashed = await ask(clients(0), "crash")
    assert (crashed.type, crashed.error) == ("info", "crash")


def test_settings_are_tried_before_a_run() -> None:
    """A setting that librdkafka does not accept is rejected in one line."""
    assert refusal(WORKLOAD.producer, WORKLOAD.consumer) is None
    wrong = refusal({"acks": "most"}, {})
    assert wrong is not None
    assert wrong.startswith("--set producer")
    assert "\n" not in wrong
    assert "no.such.key" in (refusal({}, {"no.such.key": "1"}) or "")


def test_split() -> None:
    """A topic's name may have dashes itself."""
    assert split("orders-eu-12") == ("orders-eu", 12)


@pytest.mark.parametrize(
    ("producer", "consumer", "told"),
    [
        ({"max.in.flight": "1"}, {}, "producer.max.in.flight: write max.in.flight.requests"),
        ({"request.required.acks": "1"}, {}, "producer.request.required.acks: write acks"),
    ],
)
def test_what_would_mislead_a_verdict_is_refused(
    producer: dict[str, str], consumer: dict[str, str], told: str
) -> None:
    """An alias of a setting is rejected: librdkafka would obey it and the contract ignore it."""
    assert (refusal(producer, consumer) or "").startswith(f"--set {told}")
    assert refusal({"max.in.flight.requests.per.connection": "1", "acks": "1"}, {}) is None
