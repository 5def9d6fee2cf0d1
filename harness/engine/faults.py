"""A fault schedule, carried out beside the clients and recorded as the operations of process -1.

Faults are applied and healed in the order of the schedule, whatever is late: a fault that is
planned after the heal of another is applied after it, also when that heal comes late on a slow
machine. Actions (kill, cut, start again) are carried out one after another. A measurement that
takes long does not hold up the schedule: after :data:`PATIENCE_S` the next step that is due is
carried out while the measurement goes on, so that the completions of the nemesis may come in
another order than its invocations; the fault's number says what belongs together. A fault or heal
that is not proved while other faults should have been healed by now, or will be, is tried again
after them: they may be the reason. An effect that could not be proved is measured again before the
fault is healed.
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
PATIENCE_S = 0.5
"""How long a step that is due waits for the measurement of another fault."""
AGAIN_S = 5.0
"""How long an effect that was not proved may be measured again, which keeps the fault from being
healed."""
MOMENT_S = 2.0
"""For how long a fault waits for the moment that it is meant for; it strikes without it, then."""
OVERTIME_MAX_S = 30.0
"""For how long clients wait for a schedule that lags: with nobody at work a fault proves little."""


async def _at_once(f: str) -> None:
    """Nobody is waited for."""


class Nemesis(Protocol):
    """What breaks things on request, mends them, and proves that they were broken."""

    async def invoke(self, op: Op, acted: Callable[[], None]) -> Op:
        """``acted`` is called when only a measurement is left, if that is before the end."""
        ...

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
    healed_before: int = 0
    """How many faults had been healed when the effect was measured."""


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
        self._healed = 0
        """How many heals were proved."""
        self._steps: list[_Step] = []
        """A heap of the steps that wait."""
        self._acting = asyncio.Lock()
        """Held by the one action that is being carried out."""
        self._ending = asyncio.Event()
        self._hands: list[asyncio.Task[None]] = []
        """What has gone on with the schedule when a measurement took long, each in its turn."""
        self._noticing: list[asyncio.Task[None]] = []
        self._measuring: dict[int, tuple[_Step, bool]] = {}
        """By fault: steps that others do not wait for any more, and whether they apply a fault."""
        self._turn: tuple[int, _Step, bool] | None = None
        """The fault whose step the schedule waits for, that step, and whether it applies."""
        self._timer: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        """A step of :attr:`_measuring` is over, or the main phase is."""

    def overtime_s(self, end_s: float) -> float:
        """What it takes until all is done that was planned to be done by then."""
        return OVERTIME_MAX_S if any(at_s < end_s for at_s in self._planned_s.values()) else 0.0

    async def run(self, ending: asyncio.Event) -> None:
        """The whole schedule. After ``ending`` nothing new is broken, and what is broken is healed
        at once."""
        self._steps = [_Step(fault.at_s, 0, fault.id, fault) for fault in self._schedule]
        heapq.heapify(self._steps)
        self._ending = ending
        try:
            await self._go_on()
            for hand in self._hands:  # which may grow meanwhile
                await hand
        finally:
            tasks = [*self._hands, *self._noticing]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _go_on(self) -> None:
        """Step after step, until nothing is left or a measurement takes long: then another call
        goes on, and this one ends with its step."""
        while step := await self._next():
            heals = step.id in self._applied and (
                self._ending.is_set() or step.id not in self._again
            )
            self._turn = turn = step.id, step, not heals
            try:
                following = await (self._mend(step.fault) if heals else self._strike(step.fault))
                if following is not None:
                    heapq.heappush(self._steps, following)
            finally:
                is_relieved = self._turn is not turn
                if is_relieved:
                    del self._measuring[step.id]
                    self._changed.set()
                else:
                    self._waited_for()
            if is_relieved:
                return

    async def _next(self) -> _Step | None:
        """The next step, as soon as it is due; ``None`` when nothing is left."""
        while self._steps or self._measuring:
            if not self._measuring:
                step = heapq.heappop(self._steps)
                await self._sleep_until(self._due_s.get(step.id, step.planned_s), self._ending)
                return step
            self._changed.clear()
            if not self._steps or self._is_held(self._steps[0]):
                await self._changed.wait()
                continue
            step = self._steps[0]
            due_s = self._due_s.get(step.id, step.planned_s)
            if self._ending.is_set() or due_s <= self._now_s():
                return heapq.heappop(self._steps)
            await self._sleep_until(due_s, self._changed)
        return None

    def _is_held(self, step: _Step) -> bool:
        """Is a fault still being measured that is to be healed before this step?"""
        return any(
            applies and (each.fault.at_s + each.fault.duration_s, 1, each.id) < step[:3]
            for each, applies in self._measuring.values()
        )

    def _only_measures(self, fault: ScheduledFault) -> None:
        """What the schedule waits for has acted: it is given some time to be measured."""
        if self._turn is not None and self._turn[0] == fault.id and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PATIENCE_S, self._relieve)

    def _waited_for(self) -> None:
        self._turn = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _relieve(self) -> None:
        """The measurement goes on, and so does the schedule."""
        assert self._turn is not None, "the timer goes with the turn"
        number, step, applies = self._turn
        self._waited_for()
        self._measuring[number] = step, applies
        if not self._noticing:
            self._noticing.append(asyncio.create_task(self._notice()))
        self._hands.append(asyncio.create_task(self._go_on()))

    async def _notice(self) -> None:
        await self._ending.wait()
        self._changed.set()

    def _broken(self) -> list[_Step]:
        """The steps that heal."""
        return [
            step for step in self._steps if step.id in self._applied and step.id not in self._again
        ]

    async def _strike(self, fault: ScheduledFault) -> _Step | None:
        """Apply; the mend, or the next try if others last longer than planned because of this."""
        if self._ending.is_set():
            return None
        await self._until_its_moment(fault)
        await self._apply(fault)
        tries = self._tries[fault.id, "apply"]
        overdue = [step for step in self._broken() if self._due_s[step.id] <= self._now_s()]
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

    async def _mend(self, fault: ScheduledFault) -> _Step | None:
        """Heal; the next try, behind the next of the others if there are any."""
        await self._measure_again(fault)
        healed_ns = await self._heal(fault)
        possible = HEAL_TRIES if self._applied[fault.id].applied_ns is not None else 1
        if healed_ns is None and self._tries[fault.id, "heal"] < possible:
            others = self._broken()
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

    async def _sleep_until(self, at_s: float, event: asyncio.Event) -> None:
        delay_s = at_s - self._now_s()
        if delay_s > 0:
            try:
                await asyncio.wait_for(event.wait(), delay_s)
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
            healed_before=self._healed,
        )

    async def _heal(self, fault: ScheduledFault) -> int | None:
        """When it was proved to be mended."""
        self._tries[fault.id, "heal"] += 1
        _, done = await self._ask(fault, "heal", self._applied[fault.id].targets)
        proved = done.error is None and done.value["effect"]["proved"]
        self._healed += bool(proved)
        return done.time_ns if proved else None

    async def _measure_again(self, fault: ScheduledFault) -> None:
        """Measure an effect that was not proved when the fault was applied, if other faults have
        been healed since: they may have hidden it."""
        applied = self._applied[fault.id]
        is_on = applied.applied_ns is not None and fault.id not in self._again
        if applied.effect["proved"] or not is_on or applied.healed_before == self._healed:
            return
        applied.healed_before = self._healed
        _, done = await self._ask(fault, "measure", applied.targets, AGAIN_S)
        if done.error is None:
            applied.effect = done.value["effect"]

    def _write(self, fault: ScheduledFault, healed_ns: int | None) -> None:
        applied = self._applied.pop(fault.id)
        overran_ns = None
        if applied.applied_ns is not None and healed_ns is not None:
            overran_ns = healed_ns - applied.applied_ns - round(fault.duration_s * 1e9)
        row = FaultRow(
            id=fault.id,
            fault=fault.fault,
            targets=applied.targets,
            asked_ns=applied.asked_ns,
            applied_ns=applied.applied_ns,
            healed_ns=healed_ns,
            effect=applied.effect,
            late_ns=applied.asked_ns - round(fault.at_s * 1e9),
            overran_ns=overran_ns,
        )
        self._lines.append(encode_row(row))

    async def _ask(
        self, fault: ScheduledFault, phase: str, targets: Any, timeout_s: float | None = None
    ) -> tuple[Op, Op]:
        """The invocation and the completion, as recorded."""
        value = {"id": fault.id, "phase": phase, "targets": targets, "options": fault.options}
        await self._acting.acquire()
        is_acting = True

        def acted() -> None:
            nonlocal is_acting
            if is_acting:
                is_acting = False
                self._acting.release()
                if phase != "measure":  # what comes behind the heal waits for it
                    self._only_measures(fault)

        try:
            asked = self._recorder.record(NEMESIS, "invoke", fault.fault, value)
            try:
                done = await asyncio.wait_for(
                    self._nemesis.invoke(asked, acted), timeout_s or self._timeout_s
                )
            except TimeoutError:
                done = _failed(asked, "timeout")
            except Exception as error:  # noqa: BLE001 - a fault that cannot be applied proves nothing
                done = _failed(asked, f"{type(error).__name__}: {error}")
        finally:
            if is_acting:
                self._acting.release()
        return asked, self._recorder.record(NEMESIS, "info", fault.fault, done.value, done.error)


def _failed(op: Op, error: str) -> Op:
    effect = {"proved": False, "how": error}
    return msgspec.structs.replace(
        op, type="info", value=op.value | {"effect": effect}, error=error
    )
