"""A fault schedule, carried out beside the clients and recorded as the operations of process -1.

Faults are applied and healed one after another, so that an invocation of the nemesis is followed
by its own completion, and in the order of the schedule, whatever lags: a fault that was to strike
after another was mended still does when that mend comes late, on a machine that is slow. What fails
while others last that would have been mended by now, or will be, is tried again behind them: they
may be why.
"""

import asyncio
import heapq
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from harness.engine.recorder import FaultRow, Lines, Recorder, encode_row
from model.op import NEMESIS, Op
from model.plan import ScheduledFault

APPLY_TRIES = 2
HEAL_TRIES = 5
"""A mend that is not proved is tried again: the machine may only have been slow to answer."""
BETWEEN_TRIES_S = 1.0
MOMENT_S = 2.0
"""For how long a fault waits for the moment that it is meant for; it strikes without it, then."""
OVERTIME_MAX_S = 30.0
"""For how long clients wait for a schedule that lags: with nobody at work a fault proves little."""


async def _at_once(f: str) -> None:
    """Nobody is waited for."""


class Nemesis(Protocol):
    """What breaks things on request, mends them, and proves that they were broken."""

    async def invoke(self, op: Op) -> Op: ...
    async def heal_all(self) -> None: ...


class _Step(NamedTuple):
    """One of those that wait, in this order."""

    planned_s: float
    order: int
    """Of several at a time: what is to be applied, to be mended, to be tried again."""
    id: int
    fault: ScheduledFault


@dataclass(slots=True)
class _Applied:
    asked_ns: int
    applied_ns: int | None
    targets: Any
    effect: dict[str, Any]


class Faults:
    """Runs one schedule; writes ``schedule.jsonl``, a line for each fault as it is healed."""

    def __init__(
        self,
        recorder: Recorder,
        nemesis: Nemesis,
        schedule: Sequence[ScheduledFault],
        path: Path,
        *,
        timeout_s: float = 60.0,
        beginning: Callable[[str], Awaitable[None]] = _at_once,
    ) -> None:
        """``beginning`` returns when a client begins an operation of that name: a fault whose
        option ``when`` has one strikes then."""
        self._recorder = recorder
        self._nemesis = nemesis
        self._schedule = schedule
        self._lines = Lines(path)
        self._timeout_s = timeout_s
        self._beginning = beginning
        self._applied: dict[int, _Applied] = {}
        self._planned_s: dict[int, float] = {fault.id: fault.at_s for fault in schedule}
        """When what each fault still lacks was to be: to be applied, or then to be healed."""
        self._due_s: dict[int, float] = {}
        """When it is to be, as things went."""
        self._again: set[int] = set()
        """Applied without effect, mended, and to be applied once more."""
        self._tries: Counter[tuple[int, str]] = Counter()
        """By fault and phase."""

    def overtime_s(self, end_s: float) -> float:
        """What it takes until all is done that was planned to be done by then."""
        return OVERTIME_MAX_S if any(at_s < end_s for at_s in self._planned_s.values()) else 0.0

    async def run(self, ending: asyncio.Event) -> None:
        """The whole schedule. After ``ending`` nothing new is broken, and what is broken is healed
        at once."""
        steps = [_Step(fault.at_s, 0, fault.id, fault) for fault in self._schedule]
        heapq.heapify(steps)
        while steps:
            step = heapq.heappop(steps)
            fault = step.fault
            await self._sleep_until(self._due_s.get(fault.id, step.planned_s), ending)
            if fault.id in self._applied and (ending.is_set() or fault.id not in self._again):
                following = await self._mend(fault, self._broken(steps))
            elif ending.is_set():
                following = None
            else:
                await self._until_its_moment(fault)
                following = await self._strike(fault, self._broken(steps))
            if following is not None:
                heapq.heappush(steps, following)

    def _broken(self, steps: Sequence[_Step]) -> list[_Step]:
        """What is to be mended yet."""
        return [step for step in steps if step.id in self._applied and step.id not in self._again]

    async def _strike(self, fault: ScheduledFault, others: Sequence[_Step]) -> _Step:
        """Apply; the mend, or the next try if others last longer than planned because of this."""
        await self._apply(fault)
        tries = self._tries[fault.id, "apply"]
        overdue = [step for step in others if self._due_s[step.id] <= self._now_s()]
        if overdue and tries < APPLY_TRIES and not self._applied[fault.id].effect["proved"]:
            await self._ask(fault, "heal", self._applied[fault.id].targets)
            self._again.add(fault.id)
            self._due_s[fault.id] = fault.at_s
            return _Step(max(step.planned_s for step in overdue), 2, fault.id, fault)
        self._again.discard(fault.id)
        # A fault lasts as long as planned, however long it took to apply.
        self._due_s[fault.id] = max(fault.at_s, self._now_s()) + fault.duration_s
        self._planned_s[fault.id] = fault.at_s + fault.duration_s
        return _Step(fault.at_s + fault.duration_s, 1, fault.id, fault)

    async def _mend(self, fault: ScheduledFault, others: Sequence[_Step]) -> _Step | None:
        """Heal; the next try, behind the next of the others if there are any."""
        healed_ns = await self._heal(fault)
        possible = HEAL_TRIES if self._applied[fault.id].applied_ns is not None else 1
        if healed_ns is None and self._tries[fault.id, "heal"] < possible:
            if not others:
                await asyncio.sleep(BETWEEN_TRIES_S)
                return _Step(fault.at_s, 2, fault.id, fault)
            behind = min(others)
            self._due_s[fault.id] = self._due_s[behind.id]
            return _Step(behind.planned_s, 2, fault.id, fault)
        self._write(fault, healed_ns)
        del self._planned_s[fault.id]
        return None

    def close(self) -> None:
        """Write a line for what could not be healed any more."""
        for fault in self._schedule:
            if fault.id in self._applied:
                self._write(fault, healed_ns=None)
        self._lines.close()

    def _now_s(self) -> float:
        return self._recorder.now_ns() / 1e9

    async def _sleep_until(self, at_s: float, ending: asyncio.Event) -> None:
        delay_s = at_s - self._now_s()
        if delay_s > 0:
            try:
                await asyncio.wait_for(ending.wait(), delay_s)
            except TimeoutError:
                return

    async def _until_its_moment(self, fault: ScheduledFault) -> None:
        if "when" in fault.options:
            with suppress(TimeoutError):
                async with asyncio.timeout(MOMENT_S):
                    await self._beginning(fault.options["when"])

    async def _apply(self, fault: ScheduledFault) -> None:
        self._tries[fault.id, "apply"] += 1
        # Written down before it is tried, so that an interruption in its midst leaves its line.
        self._applied[fault.id] = _Applied(
            asked_ns=self._recorder.now_ns(),
            applied_ns=None,
            targets=fault.targets,
            effect={"proved": False, "how": "interrupted"},
        )
        asked, done = await self._ask(fault, "apply", fault.targets)
        value = done.value if isinstance(done.value, dict) else {}
        self._applied[fault.id] = _Applied(
            asked_ns=asked.time_ns,
            applied_ns=done.time_ns if done.error is None else None,
            targets=value.get("targets", fault.targets),
            effect=value.get("effect") or {"proved": False, "how": done.error or "not measured"},
        )

    async def _heal(self, fault: ScheduledFault) -> int | None:
        """When it was proved to be mended."""
        self._tries[fault.id, "heal"] += 1
        _, done = await self._ask(fault, "heal", self._applied[fault.id].targets)
        proved = done.error is None and done.value["effect"]["proved"]
        return done.time_ns if proved else None

    def _write(self, fault: ScheduledFault, healed_ns: int | None) -> None:
        applied = self._applied.pop(fault.id)
        row = FaultRow(
            id=fault.id,
            fault=fault.fault,
            targets=applied.targets,
            asked_ns=applied.asked_ns,
            applied_ns=applied.applied_ns,
            healed_ns=healed_ns,
            effect=applied.effect,
        )
        self._lines.append(encode_row(row))

    async def _ask(self, fault: ScheduledFault, phase: str, targets: Any) -> tuple[Op, Op]:
        """The invocation and the completion, as recorded."""
        value = {"id": fault.id, "phase": phase, "targets": targets, "options": fault.options}
        asked = self._recorder.record(NEMESIS, "invoke", fault.fault, value)
        try:
            done = await asyncio.wait_for(self._nemesis.invoke(asked), self._timeout_s)
        except TimeoutError:
            done = _failed(asked, "timeout")
        except Exception as error:  # noqa: BLE001 - a fault that cannot be applied proves nothing
            done = _failed(asked, f"{type(error).__name__}: {error}")
        return asked, self._recorder.record(NEMESIS, "info", fault.fault, done.value, done.error)


def _failed(op: Op, error: str) -> Op:
    effect = {"proved": False, "how": error}
    return msgspec.structs.replace(
        op, type="info", value=op.value | {"effect": effect}, error=error
    )
