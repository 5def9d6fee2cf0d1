"""While a simulated world runs, it answers what libraries ask for time and randomness."""

import asyncio
import ctypes
import gc
import os
import random
import secrets
import subprocess
import sys
import threading
import time
import uuid
import weakref
from pathlib import Path
from typing import Any

import pytest

from harness.simulation import determinism
from harness.simulation.world import World


def draw(seed: int) -> list[Any]:
    async def main() -> list[Any]:
        return [
            random.random(),  # noqa: TID251 - is pinned
            random.Random().random(),
            random.SystemRandom().random(),
            os.urandom(8),  # noqa: TID251 - is pinned
            uuid.uuid4(),  # noqa: TID251 - is pinned
            secrets.token_hex(),
        ]

    with World(seed) as world:
        drawn: list[Any] = world.run(world.host("alpha").spawn(main))
    return drawn


def test_randomness_is_the_seeds() -> None:
    """All randomness that libraries draw depends on the seed, and not on earlier draws."""
    first = draw(1)
    random.random()  # noqa: TID251 - the real one
    assert draw(1) == first
    assert all(one != other for one, other in zip(draw(2), first, strict=True))


def test_the_real_ones_come_back() -> None:
    """After a world, clocks and randomness are real again, and the module's sequence goes on."""
    random.seed(5)
    expected = [random.random(), random.random()]  # noqa: TID251 - the real one
    random.seed(5)
    got = [random.random()]  # noqa: TID251 - the real one
    entropy = draw(1)[3]
    got.append(random.random())  # noqa: TID251 - the real one
    assert got == expected
    assert os.urandom(8) != entropy  # noqa: TID251 - the real one
    assert time.time() > 1_750_000_000  # noqa: TID251 - the real one
    assert gc.isenabled()
    random.seed()


def test_blocking_is_refused(pair: Any) -> None:
    """Threads and real sleeps raise, as they would escape the world.

    Executors work without threads.
    """

    async def main() -> int:
        with pytest.raises(RuntimeError, match=r"time\.sleep"):
            time.sleep(1)  # noqa: ASYNC251 - that is the point
        with pytest.raises(RuntimeError, match="thread"):
            threading.Thread(target=print).start()
        with pytest.raises(NotImplementedError, match="only TCP"):
            await asyncio.get_running_loop().create_datagram_endpoint(
                asyncio.DatagramProtocol, ("127.0.0.1", 0)
            )
        with pytest.raises(NotImplementedError, match="signal"):
            asyncio.get_running_loop().add_signal_handler(15, print)
        return await asyncio.to_thread(lambda: 6 * 7)

    assert pair.run(main) == 42


def test_other_threads_keep_real_time(pair: Any) -> None:
    """A thread that was started before a world ran keeps the real time."""
    seen: list[float] = []
    go, done = threading.Event(), threading.Event()

    def outside() -> None:
        go.wait()
        seen.append(time.time())  # noqa: TID251 - the real one
        done.set()

    thread = threading.Thread(target=outside)
    thread.start()

    async def main() -> None:
        go.set()
        done.wait()  # the real thread runs meanwhile

    pair.run(main)
    thread.join()
    assert seen[0] > 1_750_000_000


def test_finalizers_run_at_certain_steps_only(pair: Any) -> None:
    """Cyclic garbage is collected only after a fixed number of steps."""
    gone_at: list[int] = []

    class Cycle:
        def __init__(self) -> None:
            self.me = self
            weakref.finalize(self, lambda: gone_at.append(pair.world.steps))

    async def main() -> None:
        for _ in range(20_500):
            Cycle()
            await asyncio.sleep(0)

    pair.run(main)
    assert gone_at.count(20_000) > 19_000
    assert len(set(gone_at)) == 2, "and when the run ended"


def test_sets_of_tasks_have_one_order() -> None:
    """Sets of tasks and futures iterate in the same order, whatever their addresses in memory."""

    def order() -> str:
        async def sleep(name: str) -> str:
            await asyncio.sleep(1)
            return name

        async def main() -> str:
            tasks: set[asyncio.Future[Any]]
            tasks = {asyncio.create_task(sleep(name)) for name in "abcdefgh"}
            tasks |= {asyncio.gather(sleep(name), sleep("!")) for name in "ijkl"}
            done, _ = await asyncio.wait(tasks)  # noqa: TID251 - is pinned
            return "".join(task.result()[0] for task in done)

        with World(1) as world:
            found: str = world.run(world.host("alpha").spawn(main))
        return found

    first = order()
    litter = [object() for _ in range(12_345)]
    assert order() == first
    assert len(litter) == 12_345
    assert sorted(first) == list("abcdefghijkl")


def test_worlds_do_not_nest(pair: Any) -> None:
    """A world cannot run inside another world or inside an event loop."""

    async def main() -> None:
        with pytest.raises(RuntimeError, match="inside of an event loop"):
            pair.world.run(pair.beta.processes[0])

    pair.run(main)
    asyncio.run(main())


def run(*argv: str, repository: Path, **environment: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, *argv],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(repository), **environment},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


PROGRAM = """
import os, sys
from harness.simulation import determinism
determinism.exec_pinned()
hashes = hash("x"), hash(None)
print(determinism.is_pinned(), *hashes, os.environ["AIOKAFKA_NO_EXTENSIONS"], sys.argv[1:])
"""


def test_exec_pinned_keeps_the_arguments(tmp_path: Path, repository: Path) -> None:
    """`exec_pinned` restarts the program with the same arguments and with fixed hashes."""
    program = tmp_path / "program.py"
    program.write_text(PROGRAM)
    runs = [
        run(str(program), "a b", "-c", repository=repository, FILLER="x" * size)
        for size in (1, 9999)
    ]
    assert runs[0].stdout.startswith("True ")
    assert runs[0].stdout.endswith("1 ['a b', '-c']\n")
    assert runs[0].stdout == runs[1].stdout, runs[0].stderr


def test_refused_pinning_is_one_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    """If the address layout must be fixed and cannot be, one sentence says so."""

    class Library:
        class personality:
            argtypes: Any = None

            def __new__(cls, persona: int) -> int:  # type: ignore[misc]
                return -1 if persona != 0xFFFFFFFF else 0

    monkeypatch.setattr(ctypes, "CDLL", lambda name: Library)
    monkeypatch.setattr(determinism, "is_pinned", lambda: False)
    monkeypatch.setattr(determinism, "_NONE_IS_AN_ADDRESS", True)
    monkeypatch.delenv("FAULTLINE_PINNED", raising=False)
    with pytest.raises(determinism.PinError) as told:
        determinism.exec_pinned()
    assert "Python 3.12" in str(told.value)
    assert "\n" not in str(told.value)
