"""Rows become series of comparable runs."""

from pathlib import Path

import pytest

from harness.app.lake import series
from tests.harness.app.lake import made_rows
from tests.harness.app.lake.made_rows import rows, steady


def load(tmp_path: Path, *groups: object, **options: object) -> list[series.Series]:
    lake = made_rows.lake(tmp_path / "lake", *groups)  # type: ignore[arg-type]
    with lake.reading() as paths:
        return series.load(paths, None, **options)  # type: ignore[arg-type]


def test_suites_systems_and_releases_are_apart(tmp_path: Path) -> None:
    """A series has one suite and one system; a release is part of the system."""
    found = load(
        tmp_path,
        rows([1], 2, steady),
        rows([1], 2, steady, suite=None),
        rows([1], 2, steady, system="apache-kafka", release="3.9.1"),
        rows([1], 2, steady, suite="x", commit=None),
    )
    assert [each.name for each in found] == [
        "nightly · apache-kafka:3.9.1",
        "nightly · kafka",
        "no suite · kafka",
    ]


def test_releases_are_versions_on_request(tmp_path: Path) -> None:
    """By release, the releases of a system are the versions of one series."""
    (found,) = load(
        tmp_path,
        *(rows([day], 2, steady, system="apache-kafka", release=name)
          for day, name in ((5, "3.9.1"), (2, "4.0.0"))),
        rows([1], 2, steady),
        by_release=True,
    )  # fmt: skip
    assert (found.system, found.versions) == ("apache-kafka", ["4.0.0", "3.9.1"])


def test_versions_are_in_order_of_time(tmp_path: Path) -> None:
    """The order of versions is that of their first runs, not that of their names."""
    (found,) = load(tmp_path, rows([3, 1, 2], 2, steady))
    assert found.versions == [made_rows.commit(number) for number in (1, 2, 3)]
    assert found.began(made_rows.commit(2)).day == 3


@pytest.mark.parametrize(
    ("fields", "name", "value"),
    [
        ({"verdict": "invalid"}, "invalid", 1.0),
        ({"verdict": "unknown"}, "invalid", 0.0),
        ({"verdict": "failed"}, "invalid", None),
        ({"spans": [{"kind": "recovery", "seconds": 2.0, "from_s": 5.0},
                    {"kind": "recovery", "seconds": None, "from_s": 20.0}]}, "recovery_s", 40.0),
        ({"spans": [{"kind": "outage", "seconds": 9.0}]}, "recovery_s", None),
        ({"latency_list": [
            {"operation": "send", "phase": "work", "outcome": "ok", "count": 3, "p50_ms": 4.0,
             "p99_ms": 8.0},
            {"operation": "send", "phase": "final", "outcome": "ok", "count": 9, "p50_ms": 99.0,
             "p99_ms": 99.0},
            {"operation": "poll", "phase": "work", "outcome": "ok", "count": 9, "p50_ms": 99.0,
             "p99_ms": 99.0}]}, "p99_ms", 8.0),
    ],
)  # fmt: skip
def test_figures(fields: dict[str, object], name: str, value: float | None, tmp_path: Path) -> None:
    """A recovery that never ended lasts until the end of the run; latencies are those of writes."""
    (found,) = load(tmp_path, rows([1], 1, steady, **fields))
    assert found.runs[0].values.get(name) == value
