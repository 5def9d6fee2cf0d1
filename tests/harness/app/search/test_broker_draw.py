"""Every setting of the broker is drawn, or a reason says why it is not."""

import random
from collections import defaultdict

import msgspec
import pytest

from broker_impl.config.table import SETTINGS
from harness.app import catalogue
from harness.app.search import broker_draw, draw, layouts
from model.plan import Plan

KAFKA = sorted(name for name, each in catalogue.WORKLOADS.items() if each.service == "kafka")
SEEDS = 24


@pytest.fixture(scope="module")
def varied() -> set[str]:
    """Return the settings of brokers that have several values in plans of one workload."""
    found = set()
    for workload in KAFKA:
        plans = [draw.plan_of(seed, {"workload": workload}) for seed in range(SEEDS)]
        for name, setting in SETTINGS.items():
            if len({plan.broker.get(name, str(setting.default)) for plan in plans}) > 1:
                found.add(name)
    return found


def test_every_setting_is_drawn_or_has_a_reason(varied: set[str]) -> None:
    """A setting of the broker has several values in drawn plans, or a reason in the table.

    The broker's own table of settings decides which settings there are.
    """
    assert set(SETTINGS) - varied == set(broker_draw.NOT_DRAWN)
    assert all(len(reason) > 10 for reason in broker_draw.NOT_DRAWN.values())


def test_the_tables_name_each_setting_once() -> None:
    """No setting is in two tables, and none is unknown to the broker."""
    tables = (
        *(broker_draw.DRAWN_TOGETHER, broker_draw.DRAWN, broker_draw.OF_THE_CLOCKS),
        *(broker_draw.OF_THE_LAYOUT, broker_draw.OF_WORKLOADS, broker_draw.NOT_DRAWN),
    )
    named = [name for table in tables for name in table]
    assert sorted(named) == sorted(SETTINGS)
    assert set(broker_draw.GUARDED) <= set(SETTINGS)


def test_every_value_of_the_tables_is_drawn_and_valid() -> None:
    """Each value occurs over some seeds, and the broker accepts it."""
    drawn = defaultdict[str, set[str]](set)
    for seed in range(120):
        rng = random.Random(seed)
        chosen = broker_draw.settings(rng, seed, rng.choice(layouts.LAYOUTS))
        for name, value in (chosen | broker_draw.of_clocks(rng)).items():
            SETTINGS[name].parse(value)
            drawn[name].add(value)
    tables = {**broker_draw.DRAWN_TOGETHER, **broker_draw.DRAWN, **broker_draw.OF_THE_CLOCKS}
    for name, choices in tables.items():
        assert {str(value) for value in choices} <= drawn[name], name


def test_another_setting_changes_no_other_draw(monkeypatch: pytest.MonkeyPatch) -> None:
    """A row that is added to the table leaves the other draws of a seed as they were."""
    before = draw.plan_of(4, {"workload": "idempotent"}).broker
    more = {"num.partitions": (1, 2), **broker_draw.DRAWN}
    monkeypatch.setattr(broker_draw, "DRAWN", more)
    after = draw.plan_of(4, {"workload": "idempotent"}).broker
    assert before.items() <= {**after, "num.partitions": before["num.partitions"]}.items()


def test_times_that_a_clock_could_pass_at_once_are_long() -> None:
    """With a fault of clocks, producers and offsets expire as usual, unless the user says so."""
    name = "producer.id.expiration.ms"
    short = str(min(broker_draw.DRAWN[name]))
    fault = {"id": 1, "at_s": 9.0, "duration_s": 1.0, "targets": "controller"}
    jump = {**fault, "fault": "clock-jump", "options": {"seconds": 500.0}}
    calm, jumps = (
        {"workload": "groups", "schedule": [each]}
        for each in (
            {**fault, "fault": "kill"},
            jump,
        )
    )
    drawn = {draw.plan_of(seed, calm).broker[name] for seed in range(20)}
    assert short in drawn
    for seed in range(20):
        broker = draw.plan_of(seed, jumps).broker
        assert broker[name] == str(broker_draw.WEEK_MS)
        assert broker["offsets.retention.minutes"] == "10080"
    held = draw.plan_of(1, {**jumps, "broker": {name: short}})
    assert held.broker[name] == short
    assert broker_draw.guarded(Plan(schedule=()), {}) == Plan(schedule=())


def test_both_protocols_of_truncation_are_drawn() -> None:
    """Followers ask before they fetch, compare epochs in fetches, or do both."""
    drawn = {draw.plan_of(seed, {"workload": "idempotent"}).mutants for seed in range(60)}
    assert {(), ("epochs-by-question",), ("epochs-by-fetch",), ("epochs-unsynced",)} == drawn


def test_a_seed_is_the_same_with_each_workload() -> None:
    """The settings of a seed do not depend on the workload, but for those that it varies."""
    one, other = (draw.plan_of(9, {"workload": name}) for name in ("idempotent", "fencing"))
    names = {*broker_draw.DRAWN_TOGETHER, *broker_draw.DRAWN} - set(broker_draw.GUARDED)
    assert {name: one.broker[name] for name in names} == {
        name: other.broker[name] for name in names
    }
    assert msgspec.structs.replace(one, broker={}) != msgspec.structs.replace(other, broker={})
