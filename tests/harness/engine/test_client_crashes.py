"""Errors inside a client library end the process of that client, not the run."""

import asyncio
import functools
import random
from pathlib import Path
from typing import Any

import pytest
from aiokafka import TopicPartition
from aiokafka.cluster import ClusterMetadata
from aiokafka.errors import ProducerFenced
from aiokafka.producer.message_accumulator import MessageAccumulator

from harness.engine import client_crashes
from harness.engine.interpreter import Interpreter
from harness.engine.recorder import Recorder
from harness.simulation.world import Unheard, World
from model import history
from model.generator import Repeat, Stagger, Until
from model.op import Op

WHERE = "aiokafka.producer.message_accumulator.MessageAccumulator._pop_batch.<locals>.cb"


async def trip() -> None:
    """Fence a producer of aiokafka while one of its batches waits for a retry."""
    accumulator = MessageAccumulator(ClusterMetadata(), 1 << 14, 0, 30)
    place = TopicPartition("x", 0)
    record = await accumulator.add_message(place, b"key", b"value", timeout=5)
    accumulator.reenqueue(accumulator._pop_batch(place))
    accumulator.fail_all(ProducerFenced())
    for future in (record, *(batch._drain_waiter for batch in accumulator._batches[place])):
        assert isinstance(future.exception(), ProducerFenced)


@pytest.mark.parametrize("as_task", [False, True])
def test_a_process_is_told_of_what_its_client_trips_over(as_task: bool) -> None:
    """An error in a library's callback or unawaited task is reported for the client's process.

    The report names the function, but no address of an object.
    """
    told: list[tuple[int, str]] = []

    async def main() -> None:
        client_crashes.report_errors(lambda process, error: told.append((process, error)))
        for process in (7, 8):
            client_crashes.PROCESS.set(process)
            if as_task:
                asyncio.create_task(MessageAccumulator.flush(None))  # noqa: RUF006 - never awaited
            else:
                await trip()
            await asyncio.sleep(1)

    with World(1) as world:
        world.run(world.host("clients").spawn(main))
    where = "aiokafka.producer.message_accumulator.MessageAccumulator.flush"
    expected = f"AttributeError in {where}" if as_task else f"KeyError in {WHERE}"
    assert sorted(told) == [(7, expected), (8, expected)]


def test_what_is_no_librarys_fails_the_run() -> None:
    """An error in Faultline's own code, or outside of any client's process, fails the run."""

    def ours() -> None:
        raise KeyError("of ours")

    async def main(process: int | None) -> None:
        client_crashes.report_errors(lambda process, error: pytest.fail(error))
        if process is None:
            await trip()
        else:
            client_crashes.PROCESS.set(process)
            asyncio.get_running_loop().call_soon(ours)
        await asyncio.sleep(1)

    for process, error in ((3, "of ours"), (None, "MessageBatch")):
        with pytest.raises(Unheard, match=error), World(1) as world:
            world.run(world.host("clients").spawn(functools.partial(main, process)))


@pytest.mark.parametrize("idle", [False, True])
def test_the_client_is_given_up(
    virtually: Any, recorder: Recorder, tmp_path: Path, kafka: Any, idle: bool
) -> None:
    """After a library error the client is replaced, and its operation ends in info.

    If the client was idle, its next operation fails without being sent. The thread continues with
    another client.
    """

    class Tripping(type(kafka.client(0))):  # type: ignore[misc]
        async def invoke(self, op: Op) -> Op:
            if self.process == 0:
                if idle:
                    asyncio.get_running_loop().call_later(0.1, asyncio.ensure_future, trip())
                else:
                    await trip()
                    await asyncio.sleep(5.0)
            answer: Op = await super().invoke(op)
            return answer

    def client(process: int) -> Any:
        kafka.clients.append(Tripping(kafka, process))
        return kafka.clients[-1]

    kafka.logs["k-0"] = []
    run = Interpreter(recorder, client, concurrency=1, rng=random.Random(1), op_timeout_s=10.0)

    async def main() -> None:
        client_crashes.report_errors(run.client_failed)
        await run.run(Until(3.0, Stagger(0.5, Repeat("send", [["send", "k-0", 1]]))))
        await run.close()

    virtually(main())
    recorder.close()
    ends = [op for op in history.read(tmp_path / "history.jsonl") if op.type != "invoke"]
    failed = (0, "fail" if idle else "info", f"client-crash: KeyError in {WHERE}")
    expected = [(0, "ok", None), failed] if idle else [failed]
    assert [(op.process, op.type, op.error) for op in ends][: len(expected)] == expected
    assert {(op.process, op.type) for op in ends[len(expected) :]} == {(1, "ok")}
    assert [each.closed for each in kafka.clients if each.process == 0] == [False, True]
    assert len(kafka.logs["k-0"]) == len(ends) - 1
