"""The interpreter: which process performs which operation when, and what ends a process."""

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from harness.engine.interpreter import Interpreter
from harness.engine.recorder import Recorder
from model import history
from model.generator import Answer, Context, Generator, Invocation, Repeat, Stagger, Until, Wait
from model.op import Op
from model.roles import Client


def interpreter(recorder: Recorder, client: Callable[[int], Client], threads: int) -> Interpreter:
    return Interpreter(
        recorder, client, concurrency=threads, rng=random.Random(1), op_timeout_s=10.0
    )


SEND = [["send", "k-0", 1]]


def events(recorder: Recorder, tmp_path: Path) -> list[Op]:
    recorder.close()
    return list(history.read(tmp_path / "history.jsonl"))


def test_records_invocation_and_completion(
    virtually: Any, kafka: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """Each operation is an invocation and a completion of the same process, in order of time."""
    kafka.logs["k-0"] = []
    generator = Until(2.0, Stagger(0.05, Repeat("send", SEND)))
    virtually(interpreter(recorder, kafka.client, 3).run(generator))
    ops = events(recorder, tmp_path)
    assert [op.index for op in ops] == list(range(len(ops)))
    assert sorted(ops, key=lambda op: op.time_ns) == ops
    open_: set[int] = set()
    for op in ops:
        if op.type == "invoke":
            assert op.process not in open_
            open_.add(op.process)
        else:
            open_.remove(op.process)
    assert not open_
    assert len(kafka.logs["k-0"]) == len(ops) / 2
    assert len(ops) / 2 == pytest.approx(40, abs=12)


def test_a_process_that_hangs_ends_in_info_and_is_replaced(
    virtually: Any, kafka: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """A client that never answers ends its process, not the run, even if it ignores cancellation.

    The thread continues as process ``old + concurrency`` with another client.
    """
    kafka.logs["k-0"] = []
    kafka.hanging = {1}
    kafka.stubborn = True
    generator = Until(30.0, Stagger(0.5, Repeat("send", SEND)))
    virtually(interpreter(recorder, kafka.client, 2).run(generator))
    ops = events(recorder, tmp_path)
    (info,) = [op for op in ops if op.type == "info"]
    assert (info.process, info.error, info.value) == (1, "timeout", SEND)
    invoked = next(op for op in ops if op.process == 1)
    assert info.time_ns - invoked.time_ns == pytest.approx(10e9)
    assert {op.process for op in ops if op.index > info.index} == {0, 3}
    assert [client.closed for client in kafka.clients if client.process == 1] == [True]


def test_a_client_that_is_cancelled_from_within_is_doubt(
    virtually: Any, recorder: Recorder, tmp_path: Path, kafka: Any
) -> None:
    """A ``CancelledError`` that a client's library raises ends the operation in info.

    Such a library has lost one of its own tasks. The process ends, too.
    """

    class Losing(type(kafka.client(0))):  # type: ignore[misc]
        async def invoke(self, op: Op) -> Op:
            lost = asyncio.ensure_future(asyncio.Event().wait())
            asyncio.get_running_loop().call_soon(lost.cancel)
            await lost
            return op

    generator = Until(2.0, Stagger(0.5, Repeat("send", SEND)))
    virtually(interpreter(recorder, lambda p: Losing(kafka, p), 1).run(generator))
    ops = events(recorder, tmp_path)
    ends = [op for op in ops if op.type != "invoke"]
    assert {(op.type, op.error) for op in ends} == {("info", "CancelledError")}
    assert len({op.process for op in ends}) == len(ends) == len(ops) / 2


def test_an_exception_of_a_client_is_doubt(
    virtually: Any, recorder: Recorder, tmp_path: Path, kafka: Any
) -> None:
    """If a client raises an exception, the operation ends in info with that exception's name."""

    class Broken(type(kafka.client(0))):  # type: ignore[misc]
        async def invoke(self, op: Op) -> Op:
            raise OSError("no route")

    generator = Until(1.0, Stagger(0.4, Repeat("poll")))
    virtually(interpreter(recorder, lambda process: Broken(kafka, process), 1).run(generator))
    completions = [op for op in events(recorder, tmp_path) if op.type != "invoke"]
    assert {op.error for op in completions} == {"OSError: no route"}
    assert [op.process for op in completions] == list(range(len(completions)))


def test_a_broken_invariant_of_ours_ends_the_run(
    virtually: Any, recorder: Recorder, kafka: Any
) -> None:
    """A failed assertion in a client is a bug of the test and ends the run.

    It does not count as an indeterminate result of the broker.
    """

    class Wrong(type(kafka.client(0))):  # type: ignore[misc]
        async def invoke(self, op: Op) -> Op:
            raise AssertionError("one key per process")

    with pytest.raises(AssertionError, match="one key per process"):
        virtually(
            interpreter(recorder, lambda process: Wrong(kafka, process), 1).run(
                Until(1.0, Repeat("poll"))
            )
        )


def test_a_client_that_cannot_be_opened_has_done_nothing(
    virtually: Any, recorder: Recorder, tmp_path: Path, kafka: Any
) -> None:
    """If a client cannot be opened, the operation has failed for certain.

    The same process tries again one second later.
    """
    refusals = [OSError("refused"), OSError("refused")]

    class Late(type(kafka.client(0))):  # type: ignore[misc]
        async def open(self) -> None:
            if refusals:
                raise refusals.pop()
            await super().open()

    kafka.logs["k-0"] = []
    generator = Until(3.0, Repeat("poll"))
    virtually(interpreter(recorder, lambda process: Late(kafka, process), 1).run(generator))
    completions = [op for op in events(recorder, tmp_path) if op.type != "invoke"]
    assert [op.type for op in completions[:3]] == ["fail", "fail", "ok"]
    assert completions[0].error == "no-client: OSError: refused"
    assert {op.process for op in completions} == {0}
    assert completions[1].time_ns == pytest.approx(2e9)


def test_a_refused_process_that_is_not_alive_is_replaced(
    virtually: Any, kafka: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """A client that is no longer alive is replaced, although its operation failed for certain."""
    kafka.logs["k-0"] = []
    kafka.refusing = {0}
    generator = Until(1.0, Stagger(0.2, Repeat("send", SEND)))
    virtually(interpreter(recorder, kafka.client, 1).run(generator))
    completions = [op for op in events(recorder, tmp_path) if op.type != "invoke"]
    assert [(op.process, op.type) for op in completions[:2]] == [(0, "fail"), (1, "ok")]


def test_the_next_run_begins_with_new_processes(
    virtually: Any, kafka: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """After ``retire_all`` every client is closed and no old process acts again."""
    kafka.logs["k-0"] = []

    async def both() -> None:
        engine = interpreter(recorder, kafka.client, 2)
        await engine.run(Until(1.0, Stagger(0.1, Repeat("send", SEND))))
        await engine.retire_all()
        assert all(client.closed for client in kafka.clients)
        await engine.run(Until(2.0, Stagger(0.1, Repeat("send", SEND))))

    virtually(both())
    ops = events(recorder, tmp_path)
    assert {op.process for op in ops if op.time_ns < 1e9} == {0, 1}
    assert {op.process for op in ops if op.time_ns > 1.1e9} == {2, 3}


def test_exhaustion_is_told_while_operations_are_under_way(
    virtually: Any, kafka: Any, recorder: Recorder
) -> None:
    """The interpreter reports that its generator is exhausted while operations are still pending.

    Faults can thus be healed while the last operations still wait.
    """
    kafka.hanging = {0}
    told: list[float] = []

    async def run() -> float:
        loop = asyncio.get_running_loop()
        await interpreter(recorder, kafka.client, 1).run(
            Until(2.0, Repeat("poll")), on_exhausted=lambda: told.append(loop.time())
        )
        return loop.time()

    assert virtually(run()) == pytest.approx(10.0)
    assert told == [pytest.approx(2.0)]


def test_a_generator_that_waits_for_nothing_is_an_error(
    virtually: Any, kafka: Any, recorder: Recorder
) -> None:
    """A generator that waits for an event while no operation is pending would wait for ever."""

    class Stuck:
        def op(self, ctx: Context) -> Answer:
            return Wait(), self

        def update(self, event: Op) -> Generator:
            return self

    with pytest.raises(RuntimeError, match="no operation is running"):
        virtually(interpreter(recorder, kafka.client, 1).run(Stuck()))


def test_a_history_that_cannot_be_written_ends_the_run(
    virtually: Any, kafka: Any, recorder: Recorder
) -> None:
    """A failure of the recorder ends the run: results that are not recorded are worthless."""
    kafka.logs["k-0"] = []

    class Full(Exception):
        pass

    def refuse(op: Op) -> None:
        if op.type == "ok":
            raise Full

    recorder._observers = (refuse,)
    with pytest.raises(Full):
        virtually(interpreter(recorder, kafka.client, 1).run(Until(2.0, Repeat("poll"))))


def test_closing_gives_up_what_is_under_way(
    virtually: Any, kafka: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """A cancelled run leaves an invocation without completion and no open client."""
    kafka.hanging = {0}

    async def run() -> None:
        engine = interpreter(recorder, kafka.client, 1)
        try:
            async with asyncio.timeout(1.0):
                await engine.run(Until(5.0, Repeat("poll")))
        except TimeoutError:
            await engine.close()

    virtually(run())
    assert [op.type for op in events(recorder, tmp_path)] == ["invoke"]
    assert all(client.closed for client in kafka.clients)


def test_same_seed_same_history(virtually: Any, tmp_path: Path, kafka: Any) -> None:
    """On virtual time the same seed gives the same events at the same times."""

    class One:
        def op(self, ctx: Context) -> Answer:
            if not ctx.free:
                return Wait(), self
            return Invocation(process=ctx.rng.choice(ctx.free), f="poll"), self

        def update(self, event: Op) -> Generator:
            return self

    async def go(path: Path) -> None:
        fresh = type(kafka)()
        clock = asyncio.get_running_loop().time
        recorder = Recorder(path, lambda: int(clock() * 1e9))
        await interpreter(recorder, fresh.client, 3).run(Until(5.0, One()))
        recorder.close()

    def run(name: str) -> bytes:
        virtually(go(tmp_path / name))
        return (tmp_path / name).read_bytes()

    assert run("a") == run("b")
