"""The fault schedule: when faults are applied and healed, and what is recorded of them."""

import asyncio
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.engine.faults import HEAL_TRIES, MOMENT_S, ONCE_EVERY_S, ONCE_S, PATIENCE_S, Faults
from harness.engine.recorder import Recorder
from model import history
from model.op import Op
from model.plan import ScheduledFault


class FakeNemesis:
    """A nemesis that injects nothing, takes `seconds` per call and claims to have proof."""

    def __init__(self, seconds: float = 0.1) -> None:
        self.seconds = seconds
        self.calls: list[tuple[Any, str, str]] = []

    async def invoke(self, op: Op, acted: Callable[[], None]) -> Op:
        self.calls.append((asyncio.get_running_loop().time(), op.f, op.value["phase"]))
        if op.f == "broken":
            raise RuntimeError("no such node")
        await asyncio.sleep(self.seconds)
        effect = {"proved": True, "how": "seen"}
        value = op.value | {"targets": ["broker-2"], "effect": effect}
        return msgspec.structs.replace(op, type="info", value=value)

    async def is_reached(self, once: Mapping[str, Any]) -> bool:
        """``{"from_s": …, "to_s": …}``: the state is reached between these times."""
        now_s = asyncio.get_running_loop().time()
        return bool(once["from_s"] <= now_s < once.get("to_s", 1e9))

    async def heal_all(self) -> None: ...


def fault(number: int, at_s: float, duration_s: float, name: str = "pause") -> ScheduledFault:
    return ScheduledFault(
        id=number, at_s=at_s, duration_s=duration_s, fault=name, targets="leader:k-0"
    )


def run(
    virtually: Any,
    recorder: Recorder,
    path: Path,
    nemesis: FakeNemesis,
    schedule: list[ScheduledFault],
    ending_s: float = 100.0,
    **how: Any,
) -> tuple[list[dict[str, Any]], float]:
    async def main() -> float:
        faults = Faults(recorder, nemesis, schedule, path / "schedule.jsonl", timeout_s=5.0, **how)
        ending = asyncio.Event()
        asyncio.get_running_loop().call_later(ending_s, ending.set)
        await faults.run(ending)
        faults.close()
        return asyncio.get_running_loop().time()

    ended_s = virtually(main())
    lines = (path / "schedule.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines], ended_s


def test_each_fault_is_applied_and_healed_in_time(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """Faults may overlap; each is healed after its duration, and a row records its effect."""
    nemesis = FakeNemesis()
    rows, _ = run(virtually, recorder, tmp_path, nemesis, [fault(1, 1, 5), fault(2, 3, 1)])
    assert nemesis.calls == [
        (pytest.approx(1.0), "pause", "apply"),
        (pytest.approx(3.0), "pause", "apply"),
        (pytest.approx(4.1), "pause", "heal"),
        (pytest.approx(6.1), "pause", "heal"),
    ]
    assert [row["id"] for row in rows] == [2, 1]
    assert rows[0] == {
        "id": 2,
        "fault": "pause",
        "targets": ["broker-2"],
        "asked_ns": pytest.approx(3e9),
        "applied_ns": pytest.approx(3.1e9),
        "healed_ns": pytest.approx(4.2e9),
        "effect": {"proved": True, "how": "seen"},
        "late_ns": pytest.approx(0, abs=1e6),
        "overran_ns": pytest.approx(1e8, abs=1e6),
    }


def test_a_fault_strikes_in_its_moment(virtually: Any, recorder: Recorder, tmp_path: Path) -> None:
    """A fault with ``when`` is applied when a client begins that operation, or after MOMENT_S."""
    nemesis = FakeNemesis()

    async def begins(f: str) -> None:
        await asyncio.sleep({"commit": 0.7, "leave": 99.0}[f])

    schedule = [
        msgspec.structs.replace(fault(1, 1.0, 0.5), options={"when": "commit"}),
        msgspec.structs.replace(fault(2, 3.0, 0.5), options={"when": "leave"}),
    ]
    run(virtually, recorder, tmp_path, nemesis, schedule, beginning=begins)
    applied = [at_s for at_s, _, phase in nemesis.calls if phase == "apply"]
    assert applied == pytest.approx([1.7, 3.0 + MOMENT_S])


def once(which: ScheduledFault, **state: float) -> ScheduledFault:
    return msgspec.structs.replace(which, options={"once": state})


def test_the_clock_of_the_schedule_stands_still_until_a_state_is_reached(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """Heals and faults after a fault with ``once`` keep their distance from it."""
    nemesis = FakeNemesis(seconds=0.0)
    schedule = [
        fault(1, 1, 4, "slow"),
        once(fault(2, 3, 3, "kill"), from_s=10.0),
        fault(3, 4, 0.5),
    ]
    rows, _ = run(virtually, recorder, tmp_path, nemesis, schedule)
    assert nemesis.calls == [
        (pytest.approx(1.0), "slow", "apply"),
        (pytest.approx(10.0, abs=ONCE_EVERY_S), "kill", "apply"),
        (pytest.approx(11.0, abs=ONCE_EVERY_S), "pause", "apply"),
        (pytest.approx(11.5, abs=ONCE_EVERY_S), "pause", "heal"),
        (pytest.approx(12.0, abs=ONCE_EVERY_S), "slow", "heal"),
        (pytest.approx(13.0, abs=ONCE_EVERY_S), "kill", "heal"),
    ]
    assert all(row["late_ns"] == pytest.approx(0, abs=1e6) for row in rows)
    assert all(row["overran_ns"] == pytest.approx(0, abs=1e6) for row in rows)


def test_a_state_must_last(virtually: Any, recorder: Recorder, tmp_path: Path) -> None:
    """With ``lasting_s`` the state must have held for so long without a break."""

    class Flapping(FakeNemesis):
        async def is_reached(self, once: Mapping[str, Any]) -> bool:
            now_s = asyncio.get_running_loop().time()
            return 4.0 <= now_s < 5.0 or now_s >= 6.0

    nemesis = Flapping(seconds=0.0)
    run(virtually, recorder, tmp_path, nemesis, [once(fault(1, 3, 1), lasting_s=2.0)])
    assert [at_s for at_s, *_ in nemesis.calls] == pytest.approx([8.0, 9.0], abs=3 * ONCE_EVERY_S)


def test_a_state_that_is_not_reached_leaves_the_fault_out(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """The fault is recorded as not applied, with the reason, and the schedule continues."""
    nemesis = FakeNemesis(seconds=0.0)
    schedule = [once(fault(1, 3, 3, "kill"), from_s=1e6), fault(2, 5, 1)]
    rows, _ = run(virtually, recorder, tmp_path, nemesis, schedule)
    assert [at_s for at_s, *_ in nemesis.calls] == pytest.approx(
        [5.0 + ONCE_S, 6.0 + ONCE_S], abs=2 * ONCE_EVERY_S
    )
    left_out, _ = rows
    assert (left_out["id"], left_out["applied_ns"], left_out["healed_ns"]) == (1, None, None)
    assert left_out["effect"]["proved"] is False
    assert "was not reached" in left_out["effect"]["how"]


def test_no_state_is_awaited_after_the_main_phase(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """The end of the main phase ends the wait, and the fault is not applied."""
    nemesis = FakeNemesis(seconds=0.0)
    schedule = [once(fault(1, 3, 3, "kill"), from_s=20.0)]
    _, ended_s = run(virtually, recorder, tmp_path, nemesis, schedule, ending_s=10.0)
    assert nemesis.calls == []
    assert ended_s == pytest.approx(10.0, abs=2 * ONCE_EVERY_S)


def test_a_late_mend_keeps_its_place_before_the_next_fault(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """A late heal is completed before a fault that was planned to follow it is applied.

    On a slow machine all faults are delayed, but two that were planned one after the other never
    overlap: the second would strike what the first has made unavailable.
    """
    nemesis = FakeNemesis(seconds=2.0)
    run(virtually, recorder, tmp_path, nemesis, [fault(1, 1, 3, "kill"), fault(2, 4.5, 1)])
    assert nemesis.calls == [
        (pytest.approx(1.0), "kill", "apply"),
        (pytest.approx(6.0), "kill", "heal"),
        (pytest.approx(8.0), "pause", "apply"),
        (pytest.approx(11.0), "pause", "heal"),
    ]


def test_faults_are_operations_of_process_minus_one(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """Each phase of a fault is an invocation and an info completion under the fault's name."""
    run(virtually, recorder, tmp_path, FakeNemesis(), [fault(1, 1, 5), fault(2, 3, 1)])
    ops = list(history.read(tmp_path / "history.jsonl"))
    assert [op.type for op in ops] == ["invoke", "info"] * 4
    assert {(op.process, op.f) for op in ops} == {(-1, "pause")}
    assert ops[0].value == {"id": 1, "phase": "apply", "targets": "leader:k-0", "options": {}}
    assert ops[1].value["targets"] == ["broker-2"]
    assert ops[-2].value["targets"] == ["broker-2"]


def test_the_end_of_the_main_phase_heals_at_once(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """After the end of the main phase no fault is applied, and active faults are healed at once."""
    nemesis = FakeNemesis()
    schedule = [fault(1, 1, 50), fault(2, 20, 1)]
    rows, ended_s = run(virtually, recorder, tmp_path, nemesis, schedule, ending_s=10.0)
    assert [(at, phase) for at, _, phase in nemesis.calls] == [
        (pytest.approx(1.0), "apply"),
        (pytest.approx(10.0), "heal"),
    ]
    assert [row["id"] for row in rows] == [1]
    assert ended_s == pytest.approx(10.1)


def test_a_fault_that_cannot_be_applied_proves_nothing(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """If the nemesis raises, the effect counts as not proved and the schedule continues."""
    schedule = [fault(1, 1, 1, "broken"), fault(2, 2, 1)]
    rows, _ = run(virtually, recorder, tmp_path, FakeNemesis(), schedule)
    assert rows[0]["effect"] == {"proved": False, "how": "RuntimeError: no such node"}
    assert rows[0]["applied_ns"] is None
    assert rows[0]["healed_ns"] is None
    assert rows[1]["effect"]["proved"] is True


def test_a_nemesis_that_hangs_is_given_up(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """A fault whose application exceeds the time-out is not proved."""
    rows, _ = run(virtually, recorder, tmp_path, FakeNemesis(1000), [fault(1, 1, 1)])
    assert rows[0]["effect"] == {"proved": False, "how": "timeout"}


class Stubborn(FakeNemesis):
    """A nemesis whose first `failures` heals are not proved."""

    def __init__(self, failures: int) -> None:
        super().__init__()
        self.failures = failures

    async def invoke(self, op: Op, acted: Callable[[], None]) -> Op:
        done = await super().invoke(op, acted)
        if op.value["phase"] == "heal" and self.failures:
            self.failures -= 1
            value = done.value | {"effect": {"proved": False, "how": "no answer"}}
            return msgspec.structs.replace(done, value=value)
        return done


@pytest.mark.parametrize(("failures", "healed_ns"), [(0, 6.2e9), (2, 8.4e9), (HEAL_TRIES, None)])
def test_a_mend_is_tried_again_until_it_is_proved(
    virtually: Any, recorder: Recorder, tmp_path: Path, failures: int, healed_ns: float | None
) -> None:
    """A heal is tried up to HEAL_TRIES times; after that the fault counts as not healed."""
    ([row], _) = run(virtually, recorder, tmp_path, Stubborn(failures), [fault(1, 1, 5)])
    assert row["healed_ns"] == (None if healed_ns is None else pytest.approx(healed_ns))


class Hindered(FakeNemesis):
    """A nemesis that proves no other fault while the fault ``network`` is active.

    An effect that is not proved is reported after three seconds.
    """

    is_bad = False

    async def invoke(self, op: Op, acted: Callable[[], None]) -> Op:
        done = await super().invoke(op, acted)
        if op.f == "network":
            self.is_bad = op.value["phase"] == "apply"
        if op.f == "network" or not self.is_bad:
            return done
        await asyncio.sleep(3.0)
        value = done.value | {"effect": {"proved": False, "how": "no answer"}}
        return msgspec.structs.replace(done, value=value)


def test_a_mend_that_is_hindered_comes_after_the_next(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """A heal that cannot be proved is repeated after the next heal, which does not wait for it."""
    nemesis = Hindered()
    schedule = [fault(1, 1, 3, "move"), fault(2, 2, 6, "network")]
    rows, _ = run(virtually, recorder, tmp_path, nemesis, schedule)
    assert nemesis.calls[2:] == [
        (pytest.approx(4.1), "move", "heal"),
        (pytest.approx(8.1), "network", "heal"),
        (pytest.approx(8.2), "move", "heal"),
    ]
    assert [row["healed_ns"] for row in rows] == pytest.approx([8.2e9, 8.3e9])


def test_a_fault_that_is_hindered_strikes_after_the_mend(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """A fault that cannot be proved is applied again after the heal of the fault that hinders it.

    It then lasts as long as planned.
    """
    nemesis = Hindered()
    schedule = [fault(1, 1, 2, "network"), fault(2, 2, 4, "move")]
    rows, _ = run(virtually, recorder, tmp_path, nemesis, schedule)
    assert nemesis.calls[1:] == [
        (pytest.approx(2.0), "move", "apply"),
        (pytest.approx(5.1), "move", "heal"),
        (pytest.approx(8.2), "network", "heal"),
        (pytest.approx(8.3), "move", "apply"),
        (pytest.approx(12.4), "move", "heal"),
    ]
    assert [row["id"] for row in rows] == [1, 2]
    assert rows[1]["effect"]["proved"] is True


def test_a_fault_may_be_hindered_by_several_others(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """A fault is applied again after the heal of each fault that has hidden its effect."""

    class HinderedByTwo(FakeNemesis):
        active: frozenset[str] = frozenset()

        async def invoke(self, op: Op, acted: Callable[[], None]) -> Op:
            done = await super().invoke(op, acted)
            if op.f != "move":
                applies = op.value["phase"] == "apply"
                self.active = self.active | {op.f} if applies else self.active - {op.f}
            elif self.active:
                await asyncio.sleep(3.0)
                done.value["effect"] = {"proved": False, "how": "no answer"}
            return done

    nemesis = HinderedByTwo()
    schedule = [fault(1, 1, 2, "network"), fault(2, 2, 4, "move"), fault(3, 2.6, 3, "zookeeper")]
    rows, _ = run(virtually, recorder, tmp_path, nemesis, schedule)
    applied = [f for _, f, phase in nemesis.calls if phase == "apply"]
    assert applied == ["network", "move", "zookeeper", "move", "move"]
    assert [row["effect"]["proved"] for row in rows] == [True, True, True]


def test_a_fault_that_is_hindered_to_the_end_has_its_line(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """A hindered fault is not applied again after the main phase, and still has its row."""
    nemesis = Hindered()
    schedule = [fault(1, 1, 2, "network"), fault(2, 2, 4, "move")]
    rows, _ = run(virtually, recorder, tmp_path, nemesis, schedule, ending_s=8.25)
    assert [(f, phase) for _, f, phase in nemesis.calls[3:]] == [
        ("network", "heal"),
        ("move", "heal"),
    ]
    assert [row["id"] for row in rows] == [1, 2]
    assert rows[1]["effect"]["proved"] is False


class Measuring(FakeNemesis):
    """A nemesis that acts at once and then measures for the seconds given per fault and phase."""

    def __init__(self, **seconds: float) -> None:
        super().__init__()
        self.measures = seconds
        self.hidden: set[str] = set()
        """Faults whose effect cannot be proved for now."""

    async def invoke(self, op: Op, acted: Callable[[], None]) -> Op:
        self.calls.append((asyncio.get_running_loop().time(), op.f, op.value["phase"]))
        acted()
        await asyncio.sleep(self.measures.get(f"{op.f}_{op.value['phase']}", 0.0))
        proved = op.f not in self.hidden
        if op.value["phase"] == "heal":
            self.hidden.discard("move" if op.f == "network" else "")
            proved = True
        value = op.value | {"effect": {"proved": proved, "how": op.value["phase"]}}
        return msgspec.structs.replace(op, type="info", value=value)


def test_a_long_measurement_of_a_heal_holds_nothing_up(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """Other faults are applied and healed on time while the effect of a heal is measured.

    A fault waits at most PATIENCE_S for the measurement of a heal. Each fault has a row, which says
    how late it was.
    """
    nemesis = Measuring(slow_heal=4.9)
    schedule = [fault(1, 1, 2, "slow"), fault(2, 3.1, 1, "kill"), fault(3, 6, 2, "cut")]
    rows, ended_s = run(virtually, recorder, tmp_path, nemesis, schedule)
    assert nemesis.calls == [
        (pytest.approx(1.0), "slow", "apply"),
        (pytest.approx(3.0), "slow", "heal"),
        (pytest.approx(3.0 + PATIENCE_S), "kill", "apply"),
        (pytest.approx(4.0 + PATIENCE_S - 0.1, abs=0.11), "kill", "heal"),
        (pytest.approx(6.0), "cut", "apply"),
        (pytest.approx(8.0), "cut", "heal"),
    ]
    assert [row["id"] for row in rows] == [2, 1, 3]
    assert rows[0]["late_ns"] == pytest.approx((PATIENCE_S - 0.1) * 1e9)
    assert rows[2]["late_ns"] == pytest.approx(0, abs=1e6)
    assert rows[1]["overran_ns"] == pytest.approx(4.9e9)
    assert ended_s == pytest.approx(8.0)


def test_what_follows_a_heal_waits_for_the_measurement_of_its_fault(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """A fault planned after another's heal never overlaps it, however long its measurement takes.

    A fault that is planned to overlap it does overlap.
    """
    nemesis = Measuring(cut_apply=4.5)
    schedule = [fault(1, 1, 3, "cut"), fault(2, 2, 1, "kill"), fault(3, 5, 1, "pause")]
    run(virtually, recorder, tmp_path, nemesis, schedule)
    assert nemesis.calls == [
        (pytest.approx(1.0), "cut", "apply"),
        (pytest.approx(2.0), "kill", "apply"),
        (pytest.approx(3.0), "kill", "heal"),
        (pytest.approx(8.5), "cut", "heal"),
        (pytest.approx(8.5), "pause", "apply"),
        (pytest.approx(9.5), "pause", "heal"),
    ]


def test_an_effect_that_another_fault_hid_is_measured_again(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """An effect that was not proved is measured again before the heal if another fault was healed.

    If no other fault was healed since it was applied, it is not measured again.
    """
    nemesis = Measuring()
    nemesis.hidden = {"move", "lost"}
    schedule = [fault(1, 1, 4, "network"), fault(2, 2, 6, "move"), fault(3, 6, 1, "lost")]
    rows, _ = run(virtually, recorder, tmp_path, nemesis, schedule)
    assert [(f, phase) for _, f, phase in nemesis.calls] == [
        ("network", "apply"),
        ("move", "apply"),
        ("network", "heal"),
        ("lost", "apply"),
        ("lost", "heal"),
        ("move", "measure"),
        ("move", "heal"),
    ]
    assert [(row["id"], row["effect"]) for row in rows] == [
        (1, {"proved": True, "how": "apply"}),
        (3, {"proved": False, "how": "apply"}),
        (2, {"proved": True, "how": "measure"}),
    ]


def test_the_end_waits_for_a_measurement(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """A fault that is being measured when the main phase ends is healed after its measurement."""
    nemesis = Measuring(cut_apply=4.0)
    schedule = [fault(1, 1, 30, "cut"), fault(2, 9, 1, "kill")]
    rows, ended_s = run(virtually, recorder, tmp_path, nemesis, schedule, ending_s=3.0)
    assert nemesis.calls == [
        (pytest.approx(1.0), "cut", "apply"),
        (pytest.approx(5.0), "cut", "heal"),
    ]
    assert [row["id"] for row in rows] == [1]
    assert ended_s == pytest.approx(5.0)


def test_an_interruption_while_a_fault_is_applied_leaves_its_line(
    virtually: Any, recorder: Recorder, tmp_path: Path
) -> None:
    """An interrupted application is recorded as requested, neither applied nor healed."""

    async def main() -> None:
        faults = Faults(
            recorder, FakeNemesis(10.0), [fault(1, 1, 5), fault(2, 9, 1)], tmp_path / "s.jsonl"
        )
        task = asyncio.create_task(faults.run(asyncio.Event()))
        await asyncio.sleep(2.0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        faults.close()

    virtually(main())
    (row,) = map(json.loads, (tmp_path / "s.jsonl").read_text().splitlines())
    assert (row["id"], row["asked_ns"], row["applied_ns"], row["healed_ns"]) == (1, 1e9, None, None)
    assert row["effect"] == {"proved": False, "how": "interrupted"}
