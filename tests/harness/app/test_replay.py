"""A run's plan on another target: what is kept, what is dropped, and what is refused."""

from pathlib import Path

import msgspec
import pytest

from harness.app import catalogue, plan_resolution, replay
from harness.app.refused import Refused
from model.plan import Plan, ScheduledFault

CUT = ScheduledFault(id=1, at_s=2.0, duration_s=1.0, fault="partition-one", targets=["broker-1"])
KILL = ScheduledFault(id=2, at_s=5.0, duration_s=1.0, fault="kill", targets=["broker-2"])
RAN = plan_resolution.resolve(
    Plan(
        target="simulated",
        nemesis=("kill", "partition", "power"),
        schedule=(CUT, KILL),
        time_limit_s=10.0,
        broker={"min.insync.replicas": "1"},
        options={"latency_ms": 3.0, "topics": 1},
    )
)


def test_the_same_faults_strike_elsewhere() -> None:
    """The plan keeps its faults, settings and client, without options of the simulation only."""
    plan = plan_resolution.resolve(replay.retarget(RAN, "processes"))
    assert (plan.target, plan.nemesis) == ("processes", ("partition", "kill"))
    assert (plan.schedule, plan.seed) == (RAN.schedule, RAN.seed)
    assert (plan.broker, plan.rate_hz) == (RAN.broker, RAN.rate_hz)
    assert plan.options["client"] == "aiokafka"
    assert plan.options["topics"] == 1
    assert "latency_ms" not in plan.options


def test_and_back() -> None:
    """A plan of processes can be simulated if its client can."""
    real = plan_resolution.resolve(replay.retarget(RAN, "processes"))
    again = plan_resolution.resolve(replay.retarget(real, "simulated"))
    assert again.schedule == RAN.schedule
    assert again.options["latency_ms"] == catalogue.SIMULATED.options["latency_ms"]


def test_other_code_is_told() -> None:
    """A simulated history is repeatable with the same code only, so differences are reported.

    Processes never repeat a history, and a plan without versions has nothing to compare.
    """
    assert replay.changed(RAN) is None
    older = msgspec.structs.replace(RAN, commit="0123", versions=RAN.versions | {"aiokafka": "0.1"})
    told = replay.changed(older)
    assert told is not None
    assert "and was 0123" in told
    assert f"aiokafka is {RAN.versions['aiokafka']} and was 0.1" in told
    assert replay.changed(msgspec.structs.replace(older, target="processes")) is None
    assert replay.changed(msgspec.structs.replace(older, commit="", versions={})) is None


def test_a_run_without_faults() -> None:
    """A plan without faults can run on any target."""
    calm = msgspec.structs.replace(RAN, schedule=(), nemesis=("kill",))
    assert plan_resolution.resolve(replay.retarget(calm, "processes")).nemesis == ()


def test_what_cannot_be_suffered_is_refused() -> None:
    """A fault that the target cannot inject, or an unknown target, is refused in one line."""
    power = ScheduledFault(id=9, at_s=2.0, duration_s=1.0, fault="power-loss", targets="controller")
    struck = msgspec.structs.replace(RAN, schedule=(KILL, power))
    with pytest.raises(
        Refused, match=r"processes: this target does not offer fault 9 \(power-loss\)"
    ):
        replay.retarget(struck, "processes")
    with pytest.raises(
        Refused, match="--target: there is no moon; available: processes, containers"
    ):
        replay.retarget(RAN, "moon")


def test_a_run_for_which_no_fault_was_scheduled() -> None:
    """The repetition of a run without scheduled faults expects none.

    A plan with a fault, or without nemeses, is not changed.
    """
    calm = msgspec.structs.replace(RAN, schedule=())
    again = replay.without_faults(calm)
    assert again == msgspec.structs.replace(calm, nemesis=())
    assert replay.without_faults(RAN) is None
    assert replay.without_faults(msgspec.structs.replace(calm, nemesis=())) is None


def test_a_fault_without_a_possible_target_is_refused(tmp_path: Path) -> None:
    """A plan of another user whose fault names no node of its cluster could only be UNKNOWN."""
    struck = msgspec.structs.replace(KILL, targets=["broker-7"])
    plan = msgspec.structs.replace(RAN, schedule=(struck,))
    (tmp_path / "plan.json").write_bytes(msgspec.json.encode(plan))
    with pytest.raises(Refused, match=r"^schedule: fault \d+ \(kill\): .*broker-7"):
        plan_resolution.resolve(replay.plan_of(tmp_path))


def test_a_misspelt_target() -> None:
    """The refusal suggests the closest name."""
    with pytest.raises(Refused, match=r"^--target: there is no proceses; did you mean processes\?"):
        replay.retarget(RAN, "proceses")
