"""The aiokafka client against this project's brokers in the test's event loop."""

import asyncio
import gc
import struct
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import pytest
from aiokafka import AIOKafkaProducer
from aiokafka.admin import AIOKafkaAdminClient
from aiokafka.errors import KafkaError, OutOfOrderSequenceNumber

from model.op import Op
from tests.broker_impl.conftest import ClusterInLoop, ZooKeeperInLoop
from workloads.client.aio import AioClient
from workloads.client.common import Settings
from workloads.idempotent import WORKLOAD

NOWHERE = "127.0.0.1:9"


@pytest.fixture
async def cluster() -> AsyncIterator[ClusterInLoop]:
    """Three brokers that know one another."""
    zookeeper = ZooKeeperInLoop()
    await zookeeper.start()
    world = ClusterInLoop(zookeeper)
    await asyncio.gather(*(world.add(number, min_insync_replicas="2") for number in (1, 2, 3)))
    await world.ready()
    yield world
    await world.stop()


@pytest.fixture
async def clients() -> AsyncIterator[Any]:
    """Makes clients and closes them; then none has a running task or an unretrieved error.

    A simulation would report either as a failure.
    """
    complaints: list[str] = []
    asyncio.get_running_loop().set_exception_handler(
        lambda _, context: complaints.append(context["message"])
    )
    made: list[AioClient] = []

    def make(process: int, servers: str, replicas: int = 3, **producer: str) -> AioClient:
        settings = {name.replace("_", "."): value for name, value in producer.items()}
        topic = {"replication.factor": str(replicas)}
        consumer = {**WORKLOAD.consumer, "retry.backoff.ms": settings.get("retry.backoff.ms", "50")}
        client = AioClient(
            Settings(servers, process, {**WORKLOAD.producer, **settings}, consumer, topic)
        )
        made.append(client)
        return client

    yield make
    await asyncio.gather(*(client.close() for client in made))
    await asyncio.sleep(0)
    assert tasks_of_aiokafka() == []
    gc.collect()
    assert complaints == []


def tasks_of_aiokafka() -> list[str]:
    """The names of aiokafka's coroutines that have not ended."""
    coroutines: list[Any] = [task.get_coro() for task in asyncio.all_tasks()]
    return [
        coroutine.__qualname__
        for coroutine in coroutines
        if "aiokafka" in coroutine.cr_code.co_filename
    ]


async def ask(client: AioClient, f: str, value: Any = None) -> Op:
    return await client.invoke(Op(index=0, time_ns=0, process=0, type="invoke", f=f, value=value))


async def send(client: AioClient, key: str, *values: int) -> Op:
    return await ask(client, "send", [["send", key, value] for value in values])


async def create(client: AioClient, topic: str, partitions: int = 1) -> Op:
    return await ask(client, "create-topic", [["create-topic", topic, partitions]])


async def read(client: AioClient, count: int) -> dict[str, list[list[int]]]:
    """Poll until this number of records has come."""
    records: dict[str, list[list[int]]] = {}
    async with asyncio.timeout(20):
        while sum(map(len, records.values())) < count:
            polled = await ask(client, "poll", [["poll"]])
            assert polled.type == "ok"
            for key, pairs in polled.value[0][1].items():
                records.setdefault(key, []).extend(pairs)
    return records


class Answering:
    """A producer whose results for each record are given."""

    answers: tuple[int | Exception, ...] = ()

    def __init__(self, **_: Any) -> None:
        self.left = list(self.answers)
        self._sender = SimpleNamespace(sender_task=None)
        self.client = SimpleNamespace(close=self.stop)

    async def start(self) -> None:
        """Do nothing: there is no cluster to find."""

    async def stop(self) -> None:
        """Do nothing: there is nothing to close."""

    async def send(self, *_: Any, **__: Any) -> "asyncio.Future[Any]":
        future: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        answer = self.left.pop(0)
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(SimpleNamespace(offset=answer))
        return future


def answer(monkeypatch: pytest.MonkeyPatch, *answers: int | Exception) -> None:
    monkeypatch.setattr(Answering, "answers", answers)
    monkeypatch.setattr("workloads.client.aio_writer.AIOKafkaProducer", Answering)


@pytest.mark.parametrize(
    ("told", "known"),
    [
        ((7, 8, 9), [7, 8, 9]),
        ((-1, 0, 1), [None, None, None]),
        ((-1, 0, 5, 6), [None, None, 5, 6]),
        ((-1, 0, -1, 0), [None, None, None, None]),
        ((4, -1, 9), [4, None, 9]),
        ((0, 1), [0, 1]),
    ],
)
async def test_made_up_offsets_are_not_believed(
    clients: Any, monkeypatch: pytest.MonkeyPatch, told: tuple[int, ...], known: list[int | None]
) -> None:
    """Offsets that aiokafka counts from the -1 of a forgotten duplicate are not reported."""
    answer(monkeypatch, *told)
    sent = await send(clients(0, NOWHERE), "a-0", *range(len(told)))
    assert sent.type == "ok"
    assert [offset for _, _, (offset, _) in sent.value] == known


async def test_made_up_offsets_are_told_key_by_key(
    clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Made-up offsets are recognized per partition, also between records of other partitions."""
    answer(monkeypatch, -1, 0, 0, 1, 7)
    values = [["send", key, n] for n, key in enumerate(("a-0", "a-1", "a-0", "a-1", "a-0"))]
    sent = await ask(clients(0, NOWHERE), "send", values)
    assert [offset for _, _, (offset, _) in sent.value] == [None, 0, None, 1, 7]


async def test_a_producer_that_is_out_of_sequence_is_given_up(
    clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A producer is discarded after OUT_OF_ORDER_SEQUENCE_NUMBER, and its send is in doubt."""
    answer(monkeypatch, 3, OutOfOrderSequenceNumber())
    client = clients(0, NOWHERE)
    sent = await send(client, "a-0", 0, 1)
    assert (sent.type, sent.error) == ("info", "OutOfOrderSequenceNumber")
    assert sent.value == [["send", "a-0", [3, 0]], ["send", "a-0", 1]]
    assert not client.alive


@pytest.mark.slow
async def test_what_is_sent_is_read(cluster: Any, clients: Any) -> None:
    """Sends report offsets, polls return the values, and the reader knows when it has caught up."""
    writer, reader = clients(0, cluster.bootstrap), clients(1, cluster.bootstrap)
    assert (await create(writer, "a")).type == "ok"
    sent = await send(writer, "a-0", 0, 1, 2)
    assert (sent.type, sent.value) == ("ok", [["send", "a-0", [n, n]] for n in range(3)])
    assert writer.alive
    assert (await ask(reader, "assign", ["a-0"])).type == "ok"
    behind = await ask(reader, "catch-up", [["catch-up", "a-0"]])
    assert (behind.type, behind.value) == ("fail", [["catch-up", "a-0", 0, 3]])
    assert await read(reader, 3) == {"a-0": [[n, n] for n in range(3)]}
    done = await ask(reader, "catch-up", [["catch-up", "a-0"]])
    assert (done.type, done.value) == ("ok", [["catch-up", "a-0", 3, 3]])
    assert (await ask(reader, "poll", [["poll"]])).value == [["poll", {}]]


@pytest.mark.slow
async def test_replicas_are_where_the_plan_wants_them(cluster: Any) -> None:
    """With ``replicas`` the first listed broker leads every partition, and the others follow."""
    topic = {"replication.factor": "3", "replicas": "3 1 2"}
    creator = AioClient(Settings(cluster.bootstrap, 0, WORKLOAD.producer, WORKLOAD.consumer, topic))
    assert (await create(creator, "placed", 2)).type == "ok"
    admin = AIOKafkaAdminClient(bootstrap_servers=cluster.bootstrap)
    await admin.start()
    [told] = await admin.describe_topics(["placed"])
    await admin.close()
    placed = {row["partition"]: (row["leader"], row["replicas"]) for row in told["partitions"]}
    assert placed == dict.fromkeys(range(2), (3, [3, 1, 2]))


async def test_an_assignment_keeps_the_place_in_kept_keys(cluster: Any, clients: Any) -> None:
    """An assignment reads new partitions from the beginning, and kept ones from their position."""
    left, right, reader = (clients(process, cluster.bootstrap) for process in range(3))
    await create(left, "b", 2)
    await send(left, "b-0", 0)
    await send(right, "b-1", 0)
    await ask(reader, "assign", ["b-0"])
    assert await read(reader, 1) == {"b-0": [[0, 0]]}
    await ask(reader, "assign", ["b-0", "b-1"])
    await send(left, "b-0", 1)
    assert await read(reader, 2) == {"b-0": [[1, 1]], "b-1": [[0, 0]]}
    await ask(reader, "assign", ["b-1"])
    await ask(reader, "assign", ["b-1", "b-0"])
    assert await read(reader, 2) == {"b-0": [[0, 0], [1, 1]]}


@pytest.mark.slow
async def test_a_foreign_record_is_read_as_a_number_nobody_wrote(
    cluster: Any, clients: Any
) -> None:
    """Foreign bytes, or a record of another partition, are read as negative numbers."""
    reader = clients(0, cluster.bootstrap)
    await create(reader, "c")
    stranger = AIOKafkaProducer(bootstrap_servers=cluster.bootstrap)
    await stranger.start()
    await stranger.send_and_wait("c", b"?", partition=0)
    await stranger.send_and_wait("c", bytes(8), key=b"c-1", partition=0)
    await stranger.stop()
    await ask(reader, "assign", ["c-0"])
    records = await read(reader, 2)
    assert [value < 0 for _, value in records["c-0"]] == [True, True]


@pytest.mark.slow
async def test_what_was_never_queued_has_failed(cluster: Any, clients: Any) -> None:
    """A send that aiokafka rejects for its topic or partition is ``fail`` and ends the process."""
    creator = clients(0, cluster.bootstrap)
    await create(creator, "d")
    no_partition = clients(1, cluster.bootstrap)
    sent = await send(no_partition, "d-7", 0, 1)
    assert (sent.type, sent.error) == ("fail", "KafkaError")  # an assertion of aiokafka
    assert sent.value == [["send", "d-7", 0], ["send", "d-7", 1]]
    assert not no_partition.alive
    no_topic = clients(2, cluster.bootstrap, request_timeout_ms="200")
    sent = await send(no_topic, "not a topic!-0", 0)
    assert (sent.type, sent.error) == ("fail", "UnknownTopicOrPartitionError")


async def test_nobody_there_is_a_failure(clients: Any) -> None:
    """Without a cluster a send or a creation of a topic certainly fails."""
    client = clients(0, NOWHERE, delivery_timeout_ms="300")
    sent = await send(client, "e-0", 0)
    assert (sent.type, sent.error) == ("fail", "KafkaConnectionError")
    created = await create(client, "e")
    assert (created.type, created.error) == ("fail", "KafkaConnectionError")


async def test_a_reader_waits_for_a_cluster_within_a_bound(
    clients: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An assignment that finds no cluster fails only after its time limit, and may be repeated."""
    monkeypatch.setattr("workloads.client.aio_reader.QUERY_TIMEOUT_S", 0.25)
    client = clients(0, NOWHERE)
    began = asyncio.get_running_loop().time()
    assigned = await ask(client, "assign", ["e-0"])
    assert (assigned.type, assigned.error) == ("fail", "KafkaConnectionError")
    assert asyncio.get_running_loop().time() - began >= 0.24
    assert client.alive


@pytest.mark.parametrize("answers", [0, 1])
async def test_silence_is_waited_for_within_a_bound(
    clients: Any, monkeypatch: pytest.MonkeyPatch, answers: int
) -> None:
    """With a silent broker operations end in their time, and closing leaves no connection open.

    The broker accepts connections and answers nothing, or only the first request.
    """
    for module in ("aio_admin", "aio_reader"):
        monkeypatch.setattr(f"workloads.client.{module}.QUERY_TIMEOUT_S", 0.2)

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for _ in range(answers):
            request = await reader.readexactly(*struct.unpack(">i", await reader.readexactly(4)))
            answer = request[4:8] + struct.pack(">hi3h", 0, 1, 3, 0, 5)  # Metadata v0 to v5
            writer.write(struct.pack(">i", len(answer)) + answer)
        await reader.read()
        writer.close()
        closed.append(writer)

    closed: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    where = f"127.0.0.1:{server.sockets[0].getsockname()[1]}"
    client = clients(0, where, delivery_timeout_ms="200")
    sent = await send(client, "f-0", 0)
    assert (sent.type, sent.error) == ("fail", "TimeoutError")  # nothing was sent
    assert (await ask(client, "assign", ["f-0"])).error == "TimeoutError"
    created = await create(client, "f")
    assert (created.type, created.error) == ("fail", "TimeoutError")
    async with asyncio.timeout(1):
        await client.close()
        while len(closed) < 3:  # noqa: ASYNC110 - the server's side of them
            await asyncio.sleep(0.01)
    server.close()


@pytest.mark.slow
async def test_topics(cluster: Any, clients: Any) -> None:
    """Creating an existing topic is ok, and creating one with too many replicas fails."""
    client = clients(0, cluster.bootstrap)
    assert (await create(client, "g")).error is None
    again = await create(client, "g")
    assert (again.type, again.error) == ("ok", "TopicAlreadyExistsError")
    wide = await create(clients(1, cluster.bootstrap, replicas=4), "h")
    assert (wide.type, wide.error) == ("fail", "InvalidReplicationFactorError")


@pytest.mark.slow
async def test_sends_survive_their_leader(cluster: Any, clients: Any) -> None:
    """If a leader stops, sends take longer, but no record is lost or reordered."""
    writer, reader = clients(0, cluster.bootstrap), clients(1, cluster.bootstrap)
    await create(writer, "i")
    stopping = None
    for number in range(0, 400, 4):
        if number == 100:
            leader = cluster.brokers[1].broker.view.topics["i"][0].leader
            stopping = asyncio.create_task(cluster.brokers[leader].stop())
        sent = await send(writer, "i-0", *range(number, number + 4))
        assert sent.type == "ok", sent.error
        assert [offset for _, _, (offset, _) in sent.value] == list(range(number, number + 4))
    assert stopping is not None
    await stopping
    await ask(reader, "assign", ["i-0"])
    assert await read(reader, 400) == {"i-0": [[n, n] for n in range(400)]}


@pytest.mark.slow
async def test_a_send_that_nobody_answers_is_doubt(cluster: Any, clients: Any) -> None:
    """If every broker is gone, an idempotent send ends in doubt, and its producer can close."""
    writer = clients(0, cluster.bootstrap, delivery_timeout_ms="700")
    other = clients(1, cluster.bootstrap)
    await create(writer, "j")
    assert (await send(writer, "j-0", 0)).type == "ok"
    assert (await send(other, "j-0", 1)).type == "ok"
    await asyncio.gather(*(running.stop() for running in cluster.brokers.values()))
    sent = await send(writer, "j-0", 2, 3)
    assert (sent.type, sent.error) == ("info", "TimeoutError")
    assert sent.value == [["send", "j-0", 2], ["send", "j-0", 3]]
    assert not writer.alive
    sending = asyncio.create_task(send(other, "j-0", 4))
    await asyncio.sleep(0.1)
    async with asyncio.timeout(2):
        await asyncio.gather(writer.close(), other.close())
        assert ((await sending).type, (await sending).error) == ("info", "ProducerClosed")


@pytest.mark.slow
async def test_a_poll_that_meets_an_error_is_doubt(cluster: Any, clients: Any) -> None:
    """A position outside the log, or a fetcher that has stopped, ends a poll in doubt."""
    client = clients(0, cluster.bootstrap)
    await create(client, "k")
    await send(client, "k-0", 0)
    client._reads()._positions["k-0"] = 99
    await ask(client, "assign", ["k-0"])
    async with asyncio.timeout(10):
        while (polled := await ask(client, "poll", [["poll"]])).type == "ok":
            pass
    assert (polled.type, polled.error) == ("info", "OffsetOutOfRangeError")
    fetcher = client._reads()._consumer._fetcher
    fetcher.error_future.cancel()
    polled = await ask(client, "poll", [["poll"]])
    assert (polled.type, polled.error) == ("info", KafkaError.__name__)


@pytest.mark.slow
async def test_a_reader_whose_fetches_fail_can_be_closed(cluster: Any, clients: Any) -> None:
    """A consumer whose fetches sleep after an error can be closed, and no task of it remains."""
    reader = clients(0, cluster.bootstrap, retry_backoff_ms="60000")
    await create(reader, "l", 6)
    await ask(reader, "assign", [f"l-{number}" for number in range(6)])
    await asyncio.gather(*(running.stop() for running in cluster.brokers.values()))
    await ask(reader, "poll", [["poll"]])
    async with asyncio.timeout(1):
        await reader.close()
    await asyncio.sleep(0)
    assert tasks_of_aiokafka() == []


async def test_a_crash_is_doubt(clients: Any) -> None:
    """A planned crash ends in info, so that the interpreter retires the process."""
    crashed = await ask(clients(0, NOWHERE), "crash")
    assert (crashed.type, crashed.error) == ("info", "crash")


async def test_records_are_deleted_as_far_as_they_are_committed(
    cluster: ClusterInLoop, clients: Any
) -> None:
    """DeleteRecords reports the start of the log; offsets above the high watermark fail."""
    client = clients(0, cluster.bootstrap)
    await create(client, "t")
    await send(client, "t-0", 0, 1, 2)
    deleted = await ask(client, "delete-records", [["delete-records", "t-0", 2]])
    assert (deleted.type, deleted.value) == ("ok", [["delete-records", "t-0", 2, 2]])
    refused = await ask(client, "delete-records", [["delete-records", "t-0", 9]])
    assert (refused.type, refused.error) == ("fail", "OffsetOutOfRangeError")
    await ask(client, "assign", ["t-0"])
    assert await read(client, 1) == {"t-0": [[2, 2]]}


async def test_nobody_to_delete_records(clients: Any) -> None:
    """Without a cluster a deletion of records certainly fails."""
    answer = await ask(clients(0, NOWHERE), "delete-records", [["delete-records", "t-0", 2]])
    assert (answer.type, answer.error) == ("fail", "KafkaConnectionError")


async def test_a_topic_gets_other_settings(cluster: ClusterInLoop, clients: Any) -> None:
    """alter-topic changes the cleanup policy, and is in doubt if it fails."""
    client = clients(0, cluster.bootstrap)
    await create(client, "t")
    assert (await ask(client, "alter-topic", [["compacted", "t"]])).type == "ok"

    def is_compacted() -> bool:
        return all(
            running.broker is not None
            and all(log.config.is_compacted for log in running.broker._logs.logs.values())
            for running in cluster.brokers.values()
        )

    await cluster.until(is_compacted)
    unknown = await ask(client, "alter-topic", [["compacted", "nobody"]])
    assert (unknown.type, unknown.error) == ("info", "UnknownTopicOrPartitionError")
    nobody = await ask(clients(1, NOWHERE), "alter-topic", [["compacted", "t"]])
    assert (nobody.type, nobody.error) == ("info", "KafkaConnectionError")


async def test_another_life_of_a_topic(cluster: ClusterInLoop, clients: Any) -> None:
    """A recreated topic has other partition names in the history, which records reveal."""
    client = clients(0, cluster.bootstrap)
    await create(client, "t")
    await send(client, "t-0", 5)
    assert (await ask(client, "delete-topic", [["delete-topic", "t"]])).type == "ok"
    assert (await ask(client, "delete-topic", [["delete-topic", "t"]])).type == "ok", "it is gone"
    later = clients(1, cluster.bootstrap)
    assert (await create(later, "t~1")).type == "ok"
    assert (await send(later, "t~1-0", 7)).value == [["send", "t~1-0", [0, 7]]]
    await ask(later, "assign", ["t~1-0"])
    assert await read(later, 1) == {"t~1-0": [[0, 7]]}
    stranger = clients(2, cluster.bootstrap)
    await ask(stranger, "assign", ["t-0"])
    [[_, value]] = (await read(stranger, 1))["t-0"]
    assert value < 0
