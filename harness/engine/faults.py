"""Runs a fault schedule while the clients work, and records it as operations of process -1.

Faults are applied and healed in the order of the schedule, however late a step is: a fault that is
planned after the heal of another fault is applied after that heal, even if a slow machine delays
the heal. Actions (kill, cut, restart) are carried out one after another. A long measurement does
not hold up the schedule: after :data:`PATIENCE_S` the next step that is due is carried out while
the measurement continues. Completions of the nemesis may therefore come in another order than its
invocations; the fault's id pairs them.

A step that cannot be proved may have been disturbed by another fault. If the effect of a fault is
not proved while heals of other faults are overdue, the fault is healed and applied again after
those heals. A heal that is not proved is tried again after the next heal of another fault. An
effect that was not proved is measured again before its fault is healed.

The schedule has a clock of its own. It stands still while a fault waits for the state of the
cluster in its option ``once``: all later steps keep their distance from that fault.
"""

import asyncio
import heapq
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from harness.engine.recorder import FaultRow, Lines, Recorder, encode_row
from model.op import NEMESIS, Op
from model.plan import ScheduledFault

APPLY_TRIES = 4
"""How often a fault is applied at most until its effect is proved, each time after heals that were
overdue: more than one other fault may have hidden it."""
HEAL_TRIES = 5
"""How often a heal is tried at most until it is proved: a machine may only have been slow."""
BETWEEN_TRIES_S = 1.0
PATIENCE_S = 0.5
"""How long a step that is due waits for the measurement of another fault."""
AGAIN_S = 5.0
"""How long a repeated measurement of an unproved effect may delay the heal of its fault."""
MOMENT_S = 2.0
"""How long a fault waits for the operation in its option ``when`` before it is applied anyway."""
ONCE_S = 30.0
"""How long the schedule waits for a state of the cluster; without it the fault is not applied."""
ONCE_EVERY_S = 0.1
"""How often the state is read meanwhile."""
OVERTIME_MAX_S = 60.0
"""How long the clients continue for a late schedule: a fault on an idle cluster proves little."""


async def _at_once(f: str) -> None:
    """Return without waiting for an operation: the default of ``beginning``."""


class Nemesis(Protocol):
    """Applies and heals faults on request, and proves their effect."""

    async def invoke(self, op: Op, acted: Callable[[], None]) -> Op:
        """Apply, heal or measure one fault. ``acted`` is called once only a measurement is left.

        The nemesis need not call ``acted`` if the operation ends first.
        """
        ...

    async def is_reached(self, once: Mapping[str, Any]) -> bool:
        """Is the state of the cluster reached that a fault's option ``once`` describes?"""
        ...

    async def heal_all(self) -> None: ...


class _Step(NamedTuple):
    """A pending step of the schedule; the fields define the order of the heap."""

    planned_s: float
    order: int
    """Rank among steps planned for the same time: 0 applies a fault, 1 heals one, 2 is a retry."""
    id: int
    fault: ScheduledFault


@dataclass(slots=True)
class _Applied:
    asked_ns: int
    applied_ns: int | None
    targets: Any
    effect: dict[str, Any]
    late_ns: int
    held_s: float
    """How long the clock of the schedule had stood still by then."""
    healed_before: int = 0
    """How many heals had been proved when the effect was measured."""


class Faults:
    """Runs one schedule; writes a line of ``schedule.jsonl`` when each fault is healed."""

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
        """Prepare to run a schedule.

        ``beginning`` returns when a client invokes an operation of the given name: a fault whose
        option ``when`` names an operation is applied then.
        """
        self._recorder = recorder
        self._nemesis = nemesis
        self._schedule = schedule
        self._lines = Lines(path)
        self._timeout_s = timeout_s
        self._beginning = beginning
        self._applied: dict[int, _Applied] = {}
        self._planned_s: dict[int, float] = {fault.id: fault.at_s for fault in schedule}
        """The planned time of the next step of each fault (its application, then its heal)."""
        self._due_s: dict[int, float] = {}
        """When the next step of each fault is actually due; absent until the fault was applied."""
        self._again: set[int] = set()
        """Faults that were healed because their effect was not proved, and must be applied
        again."""
        self._tries: Counter[tuple[int, str]] = Counter()
        """Attempts by fault and phase."""
        self._healed = 0
        """How many heals were proved."""
        self._held_s = 0.0
        """How long the clock of the schedule has stood still."""
        self._steps: list[_Step] = []
        """A heap of the pending steps."""
        self._acting = asyncio.Lock()
        """Held by the one action that is being carried out."""
        self._ending = asyncio.Event()
        self._hands: list[asyncio.Task[None]] = []
        """Tasks that continued the schedule after a measurement took long, each in its order."""
        self._noticing: list[asyncio.Task[None]] = []
        self._measuring: dict[int, tuple[_Step, bool]] = {}
        """By fault: the step whose measurement still runs while the schedule continues, and whether
        that step applies the fault."""
        self._turn: tuple[int, _Step, bool] | None = None
        """The fault and step that the schedule waits for, and whether the step applies the
        fault."""
        self._timer: asyncio.TimerHandle | None = None
        self._changed = asyncio.Event()
        """Set when a step of :attr:`_measuring` has ended, or when the main phase has."""

    def overtime_s(self, end_s: float) -> float:
        """How long the clients may continue: 0 unless a step planned before ``end_s`` is undone."""
        return OVERTIME_MAX_S if any(at_s < end_s for at_s in self._planned_s.values()) else 0.0

    async def run(self, ending: asyncio.Event) -> None:
        """Run the whole schedule.

        Once ``ending`` is set, no new fault is applied, and applied faults are healed at once.
        """
        self._steps = [_Step(fault.at_s, 0, fault.id, fault) for fault in self._schedule]
        heapq.heapify(self._steps)
        self._ending = ending
        try:
            await self._go_on()
            for hand in self._hands:  # the list may grow meanwhile
                await hand
        finally:
            tasks = [*self._hands, *self._noticing]
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)

    async def _go_on(self) -> None:
        """Carry out step after step until the schedule is done or a measurement takes long.

        In the second case :meth:`_relieve` starts another call that continues the schedule, and
        this call ends with its step.
        """
        while step := await self._next():
            heals = step.id in self._applied and (
                self._ending.is_set() or step.id not in self._again
            )
            self._turn = turn = step.id, step, not heals
            try:
                following = await (
                    self._try_heal(step.fault) if heals else self._strike(step.fault)
                )
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
        """Wait until the next step is due and return it; ``None`` when the schedule is done."""
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
        """Return whether a fault is still being measured whose heal comes before ``step``."""
        return any(
            applies and (each.fault.at_s + each.fault.duration_s, 1, each.id) < step[:3]
            for each, applies in self._measuring.values()
        )

    def _only_measures(self, fault: ScheduledFault) -> None:
        """Start the timer that limits how long the schedule waits for this measurement."""
        if self._turn is not None and self._turn[0] == fault.id and self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(PATIENCE_S, self._relieve)

    def _waited_for(self) -> None:
        self._turn = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _relieve(self) -> None:
        """Continue the schedule in a new task while the current measurement runs on."""
        assert self._turn is not None, "the timer runs only during a step of the schedule"
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
        """The pending steps that heal a fault."""
        return [
            step for step in self._steps if step.id in self._applied and step.id not in self._again
        ]

    async def _strike(self, fault: ScheduledFault) -> _Step | None:
        """Apply a fault. Return its heal, or its next try if it delayed the heals of other faults.

        The fault is tried again only if its effect was not proved and a heal became overdue
        meanwhile.
        """
        if self._ending.is_set():
            return None
        if not await self._reaches(fault):
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

    async def _try_heal(self, fault: ScheduledFault) -> _Step | None:
        """Heal a fault. Return the next try if the heal was not proved and tries are left.

        The next try comes after the next heal of another fault, if one is pending.
        """
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
        """Write a line for each fault that is still applied, without the time of a heal."""
        for fault in self._schedule:
            if fault.id in self._applied:
                self._write(fault, healed_ns=None)
        self._lines.close()

    def _now_s(self) -> float:
        """The time on the clock of the schedule."""
        return self._recorder.now_ns() / 1e9 - self._held_s

    def _late_ns(self, fault: ScheduledFault, asked_ns: int) -> int:
        return asked_ns - round(fault.at_s * 1e9) - round(self._held_s * 1e9)

    async def _sleep_until(self, at_s: float, event: asyncio.Event) -> None:
        delay_s = at_s - self._now_s()
        if delay_s > 0:
            try:
                await asyncio.wait_for(event.wait(), delay_s)
            except TimeoutError:
                return

    async def _reaches(self, fault: ScheduledFault) -> bool:
        """Wait for the state in the fault's option ``once``; return whether it may be applied.

        If the state is not reached in time, the reason is stored in place of the fault's effect.
        """
        once = fault.options.get("once")
        if once is None or self._tries[fault.id, "apply"]:
            return True
        asked_ns = self._recorder.now_ns()
        reached = await self._wait_until_reached(once)
        self._held_s += (self._recorder.now_ns() - asked_ns) / 1e9
        if not reached:
            how = f"not applied: the state {once} was not reached"
            effect = {"proved": False, "how": how}
            self._applied[fault.id] = _Applied(
                asked_ns, None, fault.targets, effect, late_ns=0, held_s=self._held_s
            )
            self._write(fault, healed_ns=None)
            del self._planned_s[fault.id]
        return reached and not self._ending.is_set()

    async def _wait_until_reached(self, once: Mapping[str, Any]) -> bool:
        """Wait until the state is reached and has lasted; False when the time is up."""
        loop = asyncio.get_running_loop()
        lasting_s = float(once.get("lasting_s", 0.0))
        until_s = loop.time() + ONCE_S + lasting_s
        since_s: float | None = None
        while not self._ending.is_set():
            if await self._nemesis.is_reached(once):
                since_s = loop.time() if since_s is None else since_s
                if loop.time() - since_s >= lasting_s:
                    return True
            else:
                since_s = None
            if loop.time() >= until_s:
                return False
            await asyncio.sleep(ONCE_EVERY_S)
        return False

    async def _until_its_moment(self, fault: ScheduledFault) -> None:
        if "when" in fault.options:
            with suppress(TimeoutError):
                async with asyncio.timeout(MOMENT_S):
                    await self._beginning(fault.options["when"])

    async def _apply(self, fault: ScheduledFault) -> None:
        self._tries[fault.id, "apply"] += 1
        # Stored before the attempt: an interrupted one must get its line in the schedule, too.
        asked_ns = self._recorder.now_ns()
        self._applied[fault.id] = _Applied(
            asked_ns=asked_ns,
            applied_ns=None,
            targets=fault.targets,
            effect={"proved": False, "how": "interrupted"},
            late_ns=self._late_ns(fault, asked_ns),
            held_s=self._held_s,
        )
        asked, done = await self._ask(fault, "apply", fault.targets)
        value = done.value if isinstance(done.value, dict) else {}
        self._applied[fault.id] = _Applied(
            asked_ns=asked.time_ns,
            applied_ns=done.time_ns if done.error is None else None,
            targets=value.get("targets", fault.targets),
            effect=value.get("effect") or {"proved": False, "how": done.error or "not measured"},
            late_ns=self._late_ns(fault, asked.time_ns),
            held_s=self._held_s,
            healed_before=self._healed,
        )

    async def _heal(self, fault: ScheduledFault) -> int | None:
        """Heal a fault; return the time of the heal if it was proved."""
        self._tries[fault.id, "heal"] += 1
        _, done = await self._ask(fault, "heal", self._applied[fault.id].targets)
        proved = done.error is None and done.value["effect"]["proved"]
        self._healed += bool(proved)
        return done.time_ns if proved else None

    async def _measure_again(self, fault: ScheduledFault) -> None:
        """Measure an unproved effect again if other faults were healed since.

        The other faults may have hidden it.
        """
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
            held_s = self._held_s - applied.held_s
            overran_ns = healed_ns - applied.applied_ns - round((fault.duration_s + held_s) * 1e9)
        row = FaultRow(
            id=fault.id,
            fault=fault.fault,
            targets=applied.targets,
            asked_ns=applied.asked_ns,
            applied_ns=applied.applied_ns,
            healed_ns=healed_ns,
            effect=applied.effect,
            late_ns=applied.late_ns,
            overran_ns=overran_ns,
        )
        self._lines.append(encode_row(row))

    async def _ask(
        self, fault: ScheduledFault, phase: str, targets: Any, timeout_s: float | None = None
    ) -> tuple[Op, Op]:
        """Run one operation of the nemesis; return its invocation and completion as recorded."""
        value = {"id": fault.id, "phase": phase, "targets": targets, "options": fault.options}
        await self._acting.acquire()
        is_acting = True

        def acted() -> None:
            nonlocal is_acting
            if is_acting:
                is_acting = False
                self._acting.release()
                if phase != "measure":  # steps planned after this heal wait for it
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
