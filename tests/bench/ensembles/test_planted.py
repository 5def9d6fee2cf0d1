from pathlib import Path

import pytest

from bench.ensembles.planted import SCHEDULES, symptom_of
from bench.ensembles.scripts import STORIES
from broker_impl import mutants

QUICK = ("zk-partial-multi", "zk-zombie-log", "zk-zxid-of-difference", "zk-session-moved-ignored")


def shown(name: str) -> None:
    schedule = SCHEDULES[name]
    found = schedule.run([name, *schedule.together_with])
    assert symptom_of(name) in found.names
    assert schedule.run([]).violations == [], "the same schedule without the bug"


@pytest.mark.slow
@pytest.mark.parametrize("name", QUICK)
def test_a_schedule_shows_its_bug(name: str) -> None:
    """A schedule turns a check red with the planted bug, and none without it."""
    shown(name)


@pytest.mark.prove
@pytest.mark.parametrize("name", sorted(SCHEDULES))
def test_every_schedule_shows_its_bug(name: str) -> None:
    """The same for every planted bug that has a schedule."""
    shown(name)


def test_schedules_are_of_planted_bugs() -> None:
    """Each schedule belongs to a planted bug, and each story is that of a schedule."""
    names = set(mutants.names("zookeeper"))
    assert set(SCHEDULES) <= names
    assert {other for each in SCHEDULES.values() for other in each.together_with} <= names
    assert {each.story for each in SCHEDULES.values()} - {""} == set(STORIES)


def test_the_page_has_every_planted_bug(repository: Path) -> None:
    """docs/zookeeper-bugs.md has a row for each planted bug, with its schedule if it has one."""
    rows = {
        line.split("`")[1]: line
        for line in (repository / "docs" / "zookeeper-bugs.md").read_text().splitlines()
        if line.startswith("| `zk-")
    }
    assert set(rows) == set(mutants.names("zookeeper"))
    for name, row in rows.items():
        assert f"| {SCHEDULES.get(name, 'none')} |" in row
        assert f"| {mutants.get(name).source} |" in row
