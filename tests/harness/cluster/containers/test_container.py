"""A container as a node: each unexpected end is reported, once."""

import asyncio
import time
from typing import Any

import pytest
from docker.errors import APIError

from harness.cluster.containers import container
from harness.cluster.containers.container import Container, ContainerState
from harness.cluster.containers.engine import Engine
from harness.cluster.node import Exit, NodeError

RUNNING = {"Running": True, "Paused": False, "ExitCode": 0, "OOMKilled": False}
NEVER = {**RUNNING, "Running": False, "StartedAt": "0001-01-01T00:00:00Z"}


class Conflict(APIError):  # type: ignore[misc]
    """The engine's answer to a signal for a container that does not run."""

    status_code = 409


class FakeEngine:
    """An engine with one container, which ends on request or by itself."""

    def __init__(self) -> None:
        self.api = self
        self.state: dict[str, Any] = dict(NEVER)
        self.lives = 0
        self.obeys_sigterm = True
        self.dies_before_signals = False
        self.logs_fail: APIError | None = None
        self.logs_wait_s = 0.0
        self.signals: list[str] = []

    def close(self) -> None:
        """Do nothing: no connection is open."""

    def inspect_container(self, _: str) -> dict[str, Any]:
        return {"State": dict(self.state)}

    def logs(self, _: str, **how: Any) -> bytes:
        time.sleep(self.logs_wait_s)
        if self.logs_fail is not None:
            raise self.logs_fail
        return b"first\nlast words\n\n"

    def start(self, _: str) -> None:
        self.lives += 1
        self.state = {**RUNNING, "StartedAt": f"life {self.lives}"}

    def end(self, status: int) -> None:
        self.state |= {"Running": False, "Paused": False, "ExitCode": status}

    def kill(self, _: str, which: str) -> None:
        self.signals.append(which)
        if self.dies_before_signals:
            self.end(1)
            raise Conflict("conflict", explanation="is not running")
        if which == "SIGKILL":
            self.end(137)
        elif self.obeys_sigterm:
            self.end(0)

    def pause(self, _: str) -> None:
        if not self.state["Running"]:
            raise Conflict("conflict", explanation="is not running")
        self.state["Paused"] = True

    def unpause(self, _: str) -> None:
        self.state["Paused"] = False


class Held:
    """A container under test with its fake engine and the ends that it reported."""

    def __init__(self) -> None:
        self.engine = FakeEngine()
        self.ends: list[Exit] = []
        self.states: list[ContainerState] = []
        self.node = Container(
            "broker-1",
            "c0ffee",
            Engine(self.engine),
            self._ended,
        )

    def _ended(self, end: Exit, state: ContainerState) -> None:
        self.ends.append(end)
        self.states.append(state)


@pytest.fixture
def held(monkeypatch: pytest.MonkeyPatch) -> Held:
    monkeypatch.setattr(container, "OOM_LATE_S", 0.0)
    return Held()


@pytest.mark.parametrize(("code", "status"), [(0, 0), (1, 1), (64, 64), (137, -9), (139, -11)])
def test_a_signal_is_a_negative_status(code: int, status: int) -> None:
    """An end by a signal is a negative status, as for a process."""
    assert ContainerState.from_inspection(
        {**RUNNING, "Running": False, "ExitCode": code, "StartedAt": "x"}
    ).status == (status)


async def test_a_life_from_start_to_kill(held: Held) -> None:
    """Start, pause, resume and kill show in the engine's state, and none of them is a crash."""
    assert not await held.node.is_up()
    await held.node.start()
    with pytest.raises(NodeError, match="already runs"):
        await held.node.start()
    await held.node.pause()
    assert await held.node.is_paused()
    assert await held.node.is_up()
    await held.node.resume()
    assert not await held.node.is_paused()
    await held.node.kill()
    await held.node.kill()
    await held.node.look()
    assert held.engine.signals == ["SIGKILL"]
    assert held.ends == []


async def test_an_end_that_nobody_asked_for_is_told_once(held: Held) -> None:
    """An unexpected end is reported once, with its status and last line, for each start."""
    await held.node.start()
    held.engine.end(139)
    await held.node.look()
    await held.node.look()
    assert held.ends == [Exit("broker-1", -11, "last words")]
    await held.node.start()
    held.engine.end(1)
    await held.node.start()
    assert [end.status for end in held.ends] == [-11, 1], "told before the next life begins"


async def test_a_crash_right_before_a_kill_is_a_crash(held: Held) -> None:
    """A crash right before a kill counts as a crash.

    It is seen before the signal, or by the engine's refusal to send one.
    """
    await held.node.start()
    held.engine.end(3)
    await held.node.kill()
    assert [end.status for end in held.ends] == [3]
    await held.node.start()
    held.engine.dies_before_signals = True
    await held.node.kill()
    assert [end.status for end in held.ends] == [3, 1]


async def test_an_end_for_want_of_memory_says_so(held: Held) -> None:
    """An end by the OOM killer says so, because the engine knows although the log does not."""
    await held.node.start()
    held.engine.end(137)
    held.engine.state["OOMKilled"] = True
    await held.node.look()
    [end] = held.ends
    assert end.status == -9
    assert end.last_line == "killed by the kernel, out of memory; its last line was: last words"


@pytest.mark.parametrize("late", [True, False])
async def test_the_reason_of_a_kill_may_come_after_it(
    held: Held, monkeypatch: pytest.MonkeyPatch, late: bool
) -> None:
    """`look` waits for the OOM killer's report, which the engine receives separately.

    Concurrent calls wait, too. A kill without a report stays an ordinary kill.
    """
    monkeypatch.setattr(container, "OOM_LATE_S", 0.05)
    await held.node.start()
    held.engine.end(137)
    looking = [asyncio.create_task(held.node.look()) for _ in range(2)]
    await asyncio.sleep(0.02)
    assert held.ends == []
    held.engine.state["OOMKilled"] = late
    await asyncio.gather(*looking)
    [end] = held.ends
    assert end.last_line.startswith("killed by the kernel") is late
    assert [state.oom_killed for state in held.states] == [late]


async def test_an_end_is_told_although_its_last_words_are_lost(held: Held) -> None:
    """An end is reported even if the engine cannot return the container's log."""
    held.engine.logs_fail = Conflict("conflict", explanation="its log cannot be read")
    await held.node.start()
    held.engine.end(1)
    await held.node.look()
    await held.node.look()
    assert held.ends == [Exit("broker-1", 1, "")]


async def test_an_end_is_told_although_nobody_waits_for_it_any_more(held: Held) -> None:
    """An end is reported even if the look that found it is cancelled: no other would report it."""
    held.engine.logs_wait_s = 0.2
    await held.node.start()
    held.engine.end(1)
    looking = asyncio.create_task(held.node.look())
    await asyncio.sleep(0.1)
    looking.cancel()
    await asyncio.gather(looking, return_exceptions=True)
    assert held.ends == [Exit("broker-1", 1, "")]


async def test_who_does_not_run_cannot_be_frozen(held: Held) -> None:
    """A pause of a container that does not run raises NodeError with the engine's reason."""
    with pytest.raises(NodeError, match=r"broker-1: .*is not running"):
        await held.node.pause()


async def test_a_clean_stop_has_the_exit_status(held: Held) -> None:
    """A clean stop returns the exit status, also of a paused or an ended container."""
    await held.node.start()
    assert await held.node.stop(1) == 0
    assert await held.node.stop(1) == 0
    await held.node.start()
    await held.node.pause()
    assert await held.node.stop(1) == 0
    assert held.ends == []


async def test_who_does_not_stop_is_killed(held: Held) -> None:
    """A container that ignores SIGTERM is killed, and the status is that of the kill."""
    await held.node.start()
    held.engine.obeys_sigterm = False
    assert await held.node.stop(0.1) == -9
    assert held.ends == []
