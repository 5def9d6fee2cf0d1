"""Faults that only simulated nodes have: each has an effect, is healed, and breaks no promise."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from harness.app import plan_resolution
from harness.app.check import examine
from model.plan import Plan, ScheduledFault
from tests.sim.conftest import Done, Simulate

ROOT = Path(__file__).parents[2]
PLANS = ROOT / "examples" / "plans"
CALM = {"topics": 2, "late_topics": 0, "partitions": 1}


def carried_out(
    simulate: Simulate,
    nemesis: str,
    *faults: dict[str, Any],
    time_limit_s: float = 10.0,
    **plan: Any,
) -> tuple[Done, list[dict[str, Any]]]:
    """Simulate some faults, or drawn ones if there are none, and return the rows of the
    schedule."""
    schedule = tuple(
        msgspec.convert({"id": number, **fault}, ScheduledFault)
        for number, fault in enumerate(faults, start=1)
    )
    asked = Plan(
        target="simulated",
        nemesis=tuple(nemesis.split(",")),
        schedule=schedule or None,
        time_limit_s=time_limit_s,
        concurrency=4,
        **{"options": CALM, **plan},
    )
    done = simulate(asked)
    return done, done.schedule


def fault(name: str, targets: Any, duration_s: float = 2.0, **options: Any) -> dict[str, Any]:
    return {
        "at_s": 4.0,
        "duration_s": duration_s,
        "fault": name,
        "targets": targets,
        "options": options,
    }


@pytest.mark.parametrize(
    ("nemesis", "asked", "how"),
    [
        ("power", fault("power-loss", "leader:topic0-0"), "bytes were not synced"),
        ("power", fault("power-loss", "leader:topic0-0", 0.3, after=20), "bytes were not synced"),
        ("power", fault("power-loss", ["zookeeper"]), "zookeeper: off"),
        ("disk", fault("disk-full", "leader:topic0-0", 1.0), "10 bytes left"),
        ("slow-disk", fault("slow-disk", "leader:topic0-0", seconds=0.005), "then 5.0"),
        ("clock", fault("clock-skew", "controller", rate=0.5), "-0.250 s within 0.5 s"),
        ("clock", fault("clock-skew", ["zookeeper"], rate=2.0), "+0.500 s within 0.5 s"),
        ("session", fault("expire-session", "leader:topic0-0"), "is over"),
        ("session", fault("expire-session", "controller"), "is over"),
        ("messages", fault("hold-request", "leader:topic0-0", api="Produce"), "request is held"),
        (
            "messages",
            fault("hold-request", "leader:topic0-0", api="Fetch", part="response"),
            "the response is held",
        ),
        (
            "messages",
            fault("drop-response", "leader:topic0-0", api="Produce"),
            "response is dropped",
        ),
        (
            "messages",
            fault("corrupt-request", "leader:topic0-0", 0.0, api="Produce"),
            "one bit of the request is flipped",
        ),
        (
            "messages",
            fault("drop-request", "leader:topic0-0", 0.0, api="Produce", naming="topic0"),
            "the request is dropped",
        ),
        (
            "messages",
            fault("duplicate-request", "leader:topic0-0", 0.0, api="Produce"),
            "the request is delivered twice",
        ),
        ("clock", fault("clock-jump", "leader:topic0-0", seconds=-1800), "-1800.000 s"),
        ("admin", fault("elect-leaders", ["broker-2"], 0.0, times=3, gap_s=0.1), "by broker-2"),
        ("apart", fault("elect-apart", ["broker-2"], 0.0, times=2, gap_s=0.4), "by broker-2"),
        ("admin", fault("reassign", "leader:topic0-0", end="back"), "topic0-0 from [broker-"),
        ("admin", fault("reassign", "leader:topic0-0", 0.05, end="cancel"), "topic1-0 from ["),
    ],
)
def test_it_bites_and_is_mended(
    simulate: Simulate, nemesis: str, asked: dict[str, Any], how: str
) -> None:
    """A fault's effect and its heal are proved by measurement, and no promise is broken."""
    done, [row] = carried_out(simulate, nemesis, asked)
    assert row["effect"]["proved"]
    assert how in row["effect"]["how"]
    assert row["healed_ns"] is not None
    assert done.verdict["valid"] is True


SEVERAL = {**CALM, "data_directories": 2}


def test_a_broker_uses_a_repaired_directory_again(simulate: Simulate) -> None:
    """One directory of a leader fails, then another one of the controller; both are repaired."""
    done, rows = carried_out(
        simulate,
        "directories",
        fault("failed-directory", "leader:topic0-0", directory=2),
        fault("failed-directory", "controller", 1.0, directory=1) | {"at_s": 9.0},
        time_limit_s=16.0,
        options=SEVERAL,
    )
    for row, number in zip(rows, (2, 1), strict=True):
        assert row["effect"]["proved"]
        assert f"in directory {number} failed" in row["effect"]["how"]
        assert row["healed_ns"] is not None
    assert done.verdict["valid"] is True


def test_a_full_disk_of_several_directories_is_used_again(simulate: Simulate) -> None:
    """A full disk affects all directories of a broker, and the broker uses them afterwards."""
    asked = fault("disk-full", "leader:topic0-0", 1.0)
    done, [row] = carried_out(simulate, "disk", asked, options=SEVERAL)
    assert row["effect"]["proved"]
    assert row["healed_ns"] is not None
    assert done.verdict["valid"] is True


def test_a_point_orders_two_paths(simulate: Simulate) -> None:
    """A controller that has chosen a leader loses its session before it writes that down."""
    controller_write = {"point": "controller.before-zk-write"}
    done, rows = carried_out(
        simulate,
        "kill,point,session",
        fault("kill", ["broker-3"], 6.0),
        fault("at-point", "controller", 1.0, **controller_write) | {"at_s": 4.1},
        fault("expire-session", "controller", 0.0) | {"at_s": 4.2},
        time_limit_s=16.0,
    )
    assert [row["fault"] for row in rows] == ["expire-session", "at-point", "kill"]
    assert all(row["effect"]["proved"] and row["healed_ns"] is not None for row in rows)
    assert done.verdict["valid"] is True


def test_a_flipped_bit_is_found_and_flipped_back(simulate: Simulate) -> None:
    """On every replica, a flipped bit is found in a batch of its own, and is flipped back."""
    asked = fault("bit-flip", ["broker-1", "broker-2", "broker-3"], key="topic0-0")
    done, [row] = carried_out(simulate, "bit-flip", asked)
    assert row["effect"]["how"].count("does not match its CRC") == 3
    assert row["healed_ns"] is not None
    assert done.verdict["valid"] is True


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_a_controller_without_power_comes_back_as_a_follower(simulate: Simulate, seed: int) -> None:
    """A controller that loses power returns as a follower.

    Its successor may find it registered again. If it still led, its unsynced records would be lost.
    """
    strike = fault("power-loss", "controller", 0.3)
    done, [row] = carried_out(simulate, "power", strike, seed=seed)
    assert row["effect"]["proved"]
    assert row["healed_ns"] is not None
    assert done.verdict["valid"] is True


CLEAN = {"broker.unclean.leader.election.enable": "false"}
INHERENT = [
    ("last-replica-standing", "lost-write", CLEAN),
    ("simultaneous-power-loss", "lost-write", CLEAN),
    ("unclean-election-default-on", "lost-write", CLEAN),
    ("acks-1-loss", "lost-write", {"producer.acks": "all"}),
    (
        "reorder-without-idempotence",
        "int-nonmonotonic-send",
        {"producer.enable.idempotence": "true"},
    ),
    ("late-commit-hits-next-txn", "G1a", {"broker.transaction.version": "2"}),
    ("late-abort-hits-next-txn", "torn-transaction", {"broker.transaction.version": "2"}),
]
"""Plans whose loss is no bug, the anomaly, and a setting under which it would be illegal."""


@pytest.mark.slow
@pytest.mark.parametrize(("name", "anomaly", "strict"), INHERENT)
def test_a_loss_that_is_inherent_is_allowed_where_it_is_expected(
    simulate: Simulate, name: str, anomaly: str, strict: dict[str, str]
) -> None:
    """An inherent loss is permitted by its plan's contract, and illegal by the strict one."""
    plan = plan_resolution.plan_of(plan_resolution.from_toml(PLANS / f"{name}.toml"))
    done = simulate(plan)
    assert done.verdict["valid"] is True
    assert done.verdict["allowed"][anomaly] > 0
    verdict = examine(done.folder, inline=True, settings=strict).verdict
    assert verdict.valid is False
    assert verdict.anomalies[anomaly] > 0


@pytest.mark.parametrize("name", ["late-commit-hits-next-txn", "late-abort-hits-next-txn"])
def test_a_producer_that_ends_in_doubt_is_not_hit_by_itself(simulate: Simulate, name: str) -> None:
    """By default, a producer does not act again while its commit or abort may still be under
    way."""
    plan = plan_resolution.plan_of(plan_resolution.from_toml(PLANS / f"{name}.toml"))
    options = {**plan.options, "doubt_ends": True}
    done = simulate(msgspec.structs.replace(plan, options=options))
    assert done.verdict["valid"] is True
    assert done.verdict["allowed"] == {}
    assert done.verdict["evidence"]["faults_effective"] == 1


@pytest.mark.slow
@pytest.mark.parametrize(
    "nemesis", ["power", "disk", "slow-disk", "clock", "session", "messages", "directories"]
)
@pytest.mark.parametrize(
    "seed", [1, *(pytest.param(each, marks=pytest.mark.prove) for each in (2, 3))]
)
def test_a_correct_broker_survives_what_is_drawn(
    simulate: Simulate, nemesis: str, seed: int
) -> None:
    """A correct broker survives drawn faults without an anomaly."""
    options = SEVERAL if nemesis == "directories" else CALM
    done, rows = carried_out(simulate, nemesis, time_limit_s=40.0, seed=seed, options=options)
    assert rows
    assert done.verdict["valid"] is True
