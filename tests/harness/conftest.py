"""Fakes for tests without a broker: a clock that jumps, and an in-memory log without faults."""

import asyncio
import contextlib
import random
import selectors
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec
import pytest

from harness.engine.recorder import Recorder
from model.op import Op

T = TypeVar("T")


class JumpingSelector(selectors.SelectSelector):
    """A selector that, when the loop is idle, advances time to the next timer."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0)
        if ready or timeout == 0:
            return ready
        if timeout is None:
            raise RuntimeError("deadlock: every task waits and no timer is set")
        self.now += timeout
        return ready


class VirtualLoop(asyncio.SelectorEventLoop):
    """An event loop on virtual time."""

    def __init__(self) -> None:
        self._jumping = JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now


@pytest.fixture
def virtually() -> Callable[[Coroutine[Any, Any, T]], T]:
    """Run a coroutine on virtual time; each run starts at second 0."""

    def run(main: Coroutine[Any, Any, T]) -> T:
        with asyncio.Runner(loop_factory=VirtualLoop) as runner:
            return runner.run(main)

    return run


def clock_ns() -> int:
    return int(asyncio.get_running_loop().time() * 1e9)


@dataclass
class MemoryKafka:
    """One in-memory log per partition; clients append to it and read it without any anomaly."""

    rng: random.Random = field(default_factory=lambda: random.Random(7))
    logs: dict[str, list[int]] = field(default_factory=dict)
    hanging: set[int] = field(default_factory=set)
    """Processes whose operations never complete."""
    refusing: set[int] = field(default_factory=set)
    """Processes whose sends fail, and whose client is not alive afterwards."""
    stubborn: bool = False
    """Hanging clients ignore their first cancellation."""
    clients: list["MemoryClient"] = field(default_factory=list)

    def client(self, process: int) -> "MemoryClient":
        client = MemoryClient(self, process)
        self.clients.append(client)
        return client


class MemoryClient:
    """A client of :class:`MemoryKafka` for one process."""

    def __init__(self, kafka: MemoryKafka, process: int) -> None:
        self._kafka = kafka
        self.process = process
        self.alive = True
        self.opened = self.closed = False
        self._positions: dict[str, int] = {}

    async def open(self) -> None:
        self.opened = True

    async def close(self) -> None:
        self.closed = True

    async def invoke(self, op: Op) -> Op:
        assert self.opened
        assert not self.closed
        if self.process in self._kafka.hanging:
            if self._kafka.stubborn:
                with contextlib.suppress(asyncio.CancelledError):
                    await asyncio.sleep(3600)
            await asyncio.sleep(3600)
        await asyncio.sleep(self._kafka.rng.uniform(0.001, 0.02))
        logs = self._kafka.logs
        match op.f:
            case "create-topic":
                for _, topic, partitions in op.value:
                    for partition in range(partitions):
                        logs.setdefault(f"{topic}-{partition}", [])
                return _with(op, "ok", op.value)
            case "send":
                if self.process in self._kafka.refusing:
                    self.alive = False
                    return _with(op, "fail", op.value)
                value = []
                for _, key, number in op.value:
                    value.append(["send", key, [len(logs[key]), number]])
                    logs[key].append(number)
                return _with(op, "ok", value)
            case "assign":
                self._positions = {key: self._positions.get(key, 0) for key in op.value}
                return _with(op, "ok", op.value)
            case "poll":
                await asyncio.sleep(0.1)
                read = {
                    key: [[at, logs[key][at]] for at in range(position, len(logs[key]))]
                    for key, position in self._positions.items()
                    if position < len(logs[key])
                }
                for key, pairs in read.items():
                    self._positions[key] = pairs[-1][0] + 1
                return _with(op, "ok", [["poll", read]])
            case "catch-up":
                ((_, key),) = op.value
                position, end = self._positions[key], len(logs[key])
                kind = "ok" if position == end else "fail"
                return _with(op, kind, [["catch-up", key, position, end]])
            case "crash":
                return _with(op, "info", None)
            case _:
                raise AssertionError(op.f)


def _with(op: Op, kind: str, value: Any) -> Op:
    return msgspec.structs.replace(op, type=kind, value=value)


@pytest.fixture
def kafka() -> MemoryKafka:
    return MemoryKafka()


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    """A recorder that writes ``history.jsonl``, with the time of the running loop."""
    recorder = Recorder(tmp_path / "history.jsonl", clock_ns)
    yield recorder
    recorder.close()
