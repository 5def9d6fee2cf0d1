"""Runs are found in the folders that a user names, and added."""

from collections.abc import Callable
from pathlib import Path

import pytest

from harness.app.gate import outcome
from harness.app.gate.outcome import Case, Gate
from harness.app.lake import add, folders, store
from harness.app.lake.store import Lake
from harness.app.refused import Refused
from harness.app.search import outcome as search_outcome
from tests.harness.app.gate.conftest import _case, _gate
from tests.harness.app.lake import made_runs


def gate_folder(place: Path, case: Callable[..., Case], gate: Callable[..., Gate]) -> Path:
    """Make the folder of a gate with one run that it knows and one that it does not."""
    for name in ("known", "unknown"):
        made_runs.make(place / "runs" / name)
    done = gate(case(folder="runs/known", configuration="acks-1"), suite="nightly")
    outcome.write(place, done)
    return place


def rows(lake: Path, *columns: str) -> list[tuple[object, ...]]:
    with Lake.open(lake).reading() as paths:
        found = store.read(paths, columns).to_pylist()
    return sorted(tuple(row[name] for name in columns) for row in found)


def test_runs_and_gates_are_added_once(tmp_path: Path) -> None:
    """A gate stands for its runs, whose suite and configuration it knows; patterns are expanded."""
    made_runs.make(tmp_path / made_runs.NAME)
    gate_folder(tmp_path / "gate", _case, _gate)
    lake = tmp_path / "lake"
    asked = [tmp_path / "2026*", tmp_path / "gate", tmp_path / "gate" / "runs" / "known"]
    assert add.add(asked, lake, "mine") == add.Added(str(lake), 3, 3, 0)
    assert rows(lake, "name", "suite", "configuration") == [
        (made_runs.NAME, "mine", None),
        ("known", "nightly", "acks-1"),
        ("unknown", "nightly", None),
    ]
    again = add.add(asked, lake)
    assert again == add.Added(str(lake), 3, 0, 0)
    assert add.describe(again) == f"{lake}: 0 runs added, 3 were there already"


def test_a_search_stands_for_its_runs(tmp_path: Path) -> None:
    """The kept runs of a search have names that begin with the search's."""
    place = tmp_path / "20261120T204421Z-idempotent-seed1"
    for seed in (3, 4):
        made_runs.make(place / f"seed{seed}", judged=seed == 3)
    (place / search_outcome.FILE).write_text("{}")
    added = add.add([place], tmp_path / "lake")
    assert (added.added, added.incomplete) == (2, 1)
    assert rows(tmp_path / "lake", "name", "verdict") == [
        (f"{place.name}/seed3", "valid"),
        (f"{place.name}/seed4", None),
    ]


def test_a_bad_path_adds_nothing(tmp_path: Path) -> None:
    """One path that is not a run is refused in one sentence, before any run is added."""
    good = made_runs.make(tmp_path / made_runs.NAME)
    (tmp_path / "empty").mkdir()
    for bad, why in (
        ("none", "does not exist"),
        ("x" * 9000, "File name too long"),
        ("empty", "neither a run"),
        ("x*", "has such a name"),
        ("emp*", "has such a name"),
    ):
        with pytest.raises(Refused, match=why):
            add.add([good, tmp_path / bad], tmp_path / "lake")
    assert not (tmp_path / "lake").exists()


def test_a_pattern_leaves_out_what_is_no_run(tmp_path: Path) -> None:
    """``results/*`` may match other folders and files; named directly they would be refused."""
    run = made_runs.make(tmp_path / made_runs.NAME)
    (tmp_path / "gates").mkdir()
    (tmp_path / "notes.txt").touch()
    assert folders.find([tmp_path / "*"]) == [run]
    assert folders.find([tmp_path / "*", run]) == [run]


def test_which_lake(monkeypatch: pytest.MonkeyPatch) -> None:
    """The option names the lake, else the file, else the environment; a verb may need one."""
    monkeypatch.delenv(add.VARIABLE, raising=False)
    assert add.chosen(None) is None
    with pytest.raises(Refused, match="FAULTLINE_LAKE"):
        add.required(None)
    monkeypatch.setenv(add.VARIABLE, "outside")
    assert add.chosen(None) == add.required(None) == Path("outside")
    assert add.chosen(None, "file") == Path("file")
    assert add.chosen(Path("option"), "file") == Path("option")


def test_what_is_a_run(tmp_path: Path) -> None:
    """A folder with a plan or a history is that of a run."""
    assert not folders.is_run(tmp_path)
    (tmp_path / "history.jsonl").touch()
    assert folders.is_run(tmp_path)


def test_one_run_is_added_with_its_final_folder(tmp_path: Path) -> None:
    """A folder that will be removed is not in the lake; a folder that is no run says why."""
    run = made_runs.make(tmp_path / made_runs.NAME)
    lake = Lake.create(tmp_path / "lake")
    assert add.add_run(lake, run, kept=None, about={"suite": "s"}, name="gate/one") is None
    assert rows(tmp_path / "lake", "name", "suite", "folder") == [("gate/one", "s", None)]
    why = add.add_run(lake, tmp_path, kept=tmp_path)
    assert why is not None
    assert "not the folder of a run" in why
    assert len(rows(tmp_path / "lake", "name")) == 1
