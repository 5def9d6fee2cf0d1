"""Schedules are data, repeatable, and have enough faults."""

from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from model.layout import with_zookeeper
from model.plan import ScheduledFault
from nemesis import (
    admin,
    disconnect,
    disk,
    kill,
    packets,
    partition,
    pause,
    power,
    resource_limits,
    restart,
    schedule,
    slow_link,
    zookeeper,
)
from nemesis.package import Package
from nemesis.schedule import STRIKE_S
from nemesis.targets import CONTROLLER

CLASSIC = tuple(
    module.PACKAGE for module in (kill, pause, restart, partition, slow_link, zookeeper)
)
OF_CONTAINERS = tuple(module.PACKAGE for module in (disconnect, disk, resource_limits, packets))
PACKAGES = (*CLASSIC, *OF_CONTAINERS)
LAYOUT = with_zookeeper(3)
LANES = {fault: package.lane for package in PACKAGES for fault in package.names}
KINDS = {fault: package.name for package in PACKAGES for fault in package.names}


def drawn(
    seed: int, time_limit_s: float = 60.0, packages: tuple[Package, ...] = PACKAGES
) -> tuple[ScheduledFault, ...]:
    return schedule.draw(
        packages, layout=LAYOUT, seed=seed, time_limit_s=time_limit_s, keys=("x-0", "x-1")
    )


def test_same_seed_same_schedule() -> None:
    """Only the seed determines the schedule."""
    assert drawn(7) == drawn(7)
    assert len({str(drawn(seed)) for seed in range(20)}) == 20


def test_what_a_seed_draws_stays_the_same() -> None:
    """A seed draws the same faults for the same packages in every version."""
    assert [(fault.at_s, fault.fault, fault.targets) for fault in drawn(1, packages=CLASSIC)] == [
        (5.452, "pause", ["broker-3"]),
        (5.616, "partition-majorities-ring", ["broker-2", "broker-3", "broker-1"]),
        (9.358, "partition-zookeeper", ["broker-3"]),
        (10.076, "kill", "controller"),
        (21.51, "slow", "leader:x-1"),
        (22.406, "kill", ["broker-3"]),
        (30.712, "partition-halves", ["broker-1"]),
        (36.262, "partition-one", "controller"),
        (42.52, "partition-halves", ["broker-1"]),
        (51.039, "restart", ["broker-1"]),
        (51.097, "slow", "leader:x-1"),
    ]


def test_a_target_is_repeated() -> None:
    """``repeat_target_p`` changes only targets: more faults strike the broker of the one before."""
    again = 0
    for seed in range(20):
        plain = drawn(seed)
        bitter = schedule.draw(
            PACKAGES,
            layout=LAYOUT,
            seed=seed,
            time_limit_s=60.0,
            keys=("x-0", "x-1"),
            draw_settings=schedule.DrawSettings(repeat_target_p=1.0),
        )
        assert [(f.at_s, f.fault, f.options) for f in plain] == [
            (f.at_s, f.fault, f.options) for f in bitter
        ]
        changed = [(f, g) for f, g in zip(plain, bitter, strict=True) if f.targets != g.targets]
        again += len(changed)
        ones = {
            str(g.targets)
            for g in bitter
            if isinstance(g.targets, str)
            or tuple(g.targets) in {(each,) for each in LAYOUT.brokers}
        }
        assert len(ones) <= 1
        assert all("zookeeper" not in f.targets for f, _ in changed)
    assert again > 50


def test_what_takes_long_gets_its_time() -> None:
    """With ``exclusive_p`` faults that must be alone are drawn more often.

    Without it they mostly take too long for a shared period. No other fault is active while they
    last.
    """
    packages = (*CLASSIC, power.PACKAGE)
    long = ("restart-rolling", "power-loss")

    def counted(p: float) -> int:
        count = 0
        for seed in range(40):
            faults = schedule.draw(
                packages,
                layout=LAYOUT,
                seed=seed,
                time_limit_s=40.0,
                draw_settings=schedule.DrawSettings(exclusive_p=p),
            )
            for fault in (each for each in faults if each.fault in long):
                during = [f for f in faults if 0 <= f.at_s - fault.at_s <= fault.duration_s]
                assert during == [fault]
                count += 1
        return count

    assert counted(0.7) > 2 * counted(0.0)


def test_operators_are_at_work_beside_others() -> None:
    """Operators act in some periods with other faults, never during a fault that must be alone.

    They also act in periods of their own, if no other package is available.
    """
    beside = Counter[bool]()
    for seed in range(40):
        faults = drawn(seed, packages=(*CLASSIC, admin.PACKAGE))
        for asked in (each for each in faults if each.fault in admin.PACKAGE.names):
            end_s = asked.at_s + max(asked.duration_s, 0.5)
            during = [
                other
                for other in faults
                if other.at_s < end_s and other.at_s + other.duration_s > asked.at_s
            ]
            beside[len(during) > 1] += 1
            assert not any("zookeeper" in other.targets for other in during)
    assert beside[True] > 20
    assert beside[False] > 20
    assert drawn(1, packages=(admin.PACKAGE,))


def test_faults_strike_while_requests_are_carried_out() -> None:
    """``strike_p`` moves requests to shortly before other faults, and these to the controller."""
    packages = (*CLASSIC, admin.PACKAGE)

    def counted(p: float) -> tuple[int, int]:
        close = at_controller = 0
        for seed in range(60):
            faults = schedule.draw(
                packages,
                layout=LAYOUT,
                seed=seed,
                time_limit_s=40.0,
                keys=("x-0", "x-1"),
                draw_settings=schedule.DrawSettings(strike_p=p),
            )
            asked = [each for each in faults if each.fault in admin.PACKAGE.names]
            for one, next_one in pairwise(asked):
                assert one.at_s + one.duration_s <= next_one.at_s
            for each in asked:
                assert each.at_s + each.duration_s <= 35.0
                struck = [
                    other
                    for other in faults
                    if other not in asked and 0 <= other.at_s - each.at_s <= STRIKE_S
                ]
                close += bool(struck)
                at_controller += any(other.targets == CONTROLLER for other in struck)
        return close, at_controller

    (close, few), (more, many) = counted(0.0), counted(1.0)
    assert more > 1.2 * close
    assert many > 3 * few


def test_classic_faults_are_not_crowded_out() -> None:
    """With all packages the classic ones still draw most faults, and each package has its share."""
    struck = Counter(KINDS[fault.fault] for seed in range(60) for fault in drawn(seed))
    assert set(struck) == {package.name for package in PACKAGES}
    assert sum(struck[package.name] for package in CLASSIC) >= 2 / 3 * struck.total()
    assert all(count >= struck.total() / 100 for count in struck.values())


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_a_minute_has_enough_in_it(seed: int) -> None:
    """Sixty seconds have at least seven faults of at least three packages, after a quiet start."""
    faults = drawn(seed)
    packages = {package.name for package in PACKAGES for f in faults if f.fault in package.names}
    assert len(faults) >= 7
    assert len(packages) >= 3
    assert faults[0].at_s >= 5.0
    assert [fault.id for fault in faults] == list(range(1, len(faults) + 1))


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), time_limit_s=st.floats(6.0, 120.0))
def test_all_is_over_before_the_end(seed: int, time_limit_s: float) -> None:
    """Everything is healed before the workload ends, and faults are sorted by their times."""
    faults = drawn(seed, time_limit_s)
    assert all(fault.at_s + fault.duration_s < time_limit_s for fault in faults)
    assert list(faults) == sorted(faults, key=lambda fault: fault.at_s)


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6))
def test_one_fault_of_a_lane_at_a_time(seed: int) -> None:
    """Two faults of one lane never overlap, and a fault that must be alone is alone."""
    faults = drawn(seed)
    for lane in schedule.LANES:
        mine = [fault for fault in faults if LANES[fault.fault] == lane]
        for before, after in pairwise(mine):
            assert before.at_s + before.duration_s < after.at_s
    for lonely in faults:
        if (
            lonely.fault in ("restart-rolling", "squeeze-cpu", *zookeeper.FAULTS)
            or "zookeeper" in lonely.targets
        ):
            takes_s = lonely.duration_s or 9.0
            assert not any(
                other.at_s <= lonely.at_s + takes_s and lonely.at_s <= other.at_s + other.duration_s
                for other in faults
                if other is not lonely
            )


def test_every_schedule_has_a_quiet_spell() -> None:
    """In every minute no fault is active for at least two seconds."""
    for seed in range(30):
        over_s, gaps = 0.0, []
        for fault in drawn(seed):
            gaps.append(fault.at_s - over_s)
            over_s = max(over_s, fault.at_s + fault.duration_s)
        assert max(gaps[1:]) >= 2.0


@pytest.mark.parametrize("package", PACKAGES)
def test_one_package_alone(package: Package) -> None:
    """With one package every fault is of that package."""
    faults = drawn(3, packages=(package,))
    assert len(faults) >= (7 if package in CLASSIC else 5)
    assert {fault.fault for fault in faults} <= set(package.names)


def test_no_packages_no_faults() -> None:
    """Without packages there is no schedule."""
    assert drawn(1, packages=()) == ()


def test_short_runs_are_allowed() -> None:
    """A run of a few seconds may have no fault, and still has a schedule."""
    assert all(fault.at_s < 3.0 for fault in drawn(1, time_limit_s=3.0))


def test_some_faults_have_a_moment() -> None:
    """With ``trigger_ops`` some faults have the option ``when``, and nothing else changes."""
    whens = set()
    for seed in range(5):
        plain = schedule.draw(PACKAGES, layout=LAYOUT, seed=seed, time_limit_s=60.0)
        timed = schedule.draw(
            PACKAGES, layout=LAYOUT, seed=seed, time_limit_s=60.0, trigger_ops=("commit", "leave")
        )
        assert "when" not in str(plain)
        whens |= {fault.options.pop("when", None) for fault in timed}
        assert timed == plain
    assert whens == {None, "commit", "leave"}
