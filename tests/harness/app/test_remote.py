"""Histories and runs at URIs; ``file:`` stands for any other scheme here."""

from pathlib import Path
from typing import Any

import pytest

from checkers.stores import Entry, Store
from harness.app import remote, run_folder
from harness.app.uris import Uri
from model.history import BadHistory

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def store(spark: Any) -> Store:
    return Store(spark)


def made(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)


def test_what_a_pattern_matches(tmp_path: Path, store: Store) -> None:
    """What holds no history is named and left out, unless nothing would be left."""
    made(tmp_path, "run/history.jsonl", "run/plan.json", "judgements/run/verdict.json", "R.md")
    made(tmp_path, "a.jsonl.gz", "jepsen/history.edn", "typed/history.parquet")
    home = tmp_path.as_uri()
    messages: list[str] = []
    found = remote.histories(store, Uri(f"{home}/*"), messages.append)
    plain = home.replace("file://", "file:")
    assert [each.history.uri for each in found] == [
        f"{plain}/a.jsonl.gz",
        f"{plain}/jepsen/history.edn",
        f"{plain}/run/history.jsonl",
        f"{plain}/typed/history.parquet",
    ]
    assert [each.is_run for each in found] == [False, False, True, True]
    assert messages == [
        f"{plain}/{name} holds no history and is left out" for name in ("R.md", "judgements")
    ]
    messages.clear()
    [only] = remote.histories(store, Uri(f"{home}/R.m*"), messages.append)
    assert only.history.name == "R.md"
    assert not messages


class Folders:
    """A store that has folders of this machine, without Spark."""

    def matching(self, uri: Uri) -> list[Entry]:
        return [self._entry(Path(uri.removeprefix("file:")))]

    def inside(self, uri: str) -> list[Entry]:
        return [self._entry(path) for path in sorted(Path(uri.removeprefix("file:")).iterdir())]

    def _entry(self, path: Path) -> Entry:
        return Entry(f"file:{path}", path.stat().st_size, path.is_dir())


def test_a_history_of_several_files_is_refused(tmp_path: Path) -> None:
    """A part of a history is not judged as the whole; other files in its folder are no part."""
    made(tmp_path, "run/history.jsonl", "run/plan.json", "run/history-1.jsonl")
    folders: Any = Folders()
    [run] = remote.histories(folders, Uri(f"file:{tmp_path}/run"), print)
    assert run.is_run
    made(tmp_path, "run/history-000001.jsonl")
    with pytest.raises(BadHistory, match=r"run: this history has several files.*copy the folder"):
        remote.histories(folders, Uri(f"file:{tmp_path}/run"), print)


def test_a_run_is_copied(tmp_path: Path, store: Store) -> None:
    """A judgement and its report need the other files of the run; the history comes on demand."""
    names = ("plan.json", "verdict.json", "nodes/b1/log.txt")
    made(tmp_path / "run", "history.jsonl", *names, "nodes/b1/data/0.log", "report.html", "x.bin")
    [run] = remote.histories(store, Uri((tmp_path / "run").as_uri()), print)
    with remote.copied_run(store, run) as folder:
        assert folder is not None
        assert folder.name == "run"
        copied = {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}
        assert copied == {*names, "report.html"}
        with remote.copied_history(store, run, folder) as history:
            assert history == folder / "history.jsonl"
            assert run_folder.refusal(folder) is None
            assert history.read_text() == "history.jsonl"
    assert not folder.exists()


def test_a_refusal_names_the_original(tmp_path: Path, store: Store) -> None:
    """The copy is not known to the user."""
    made(tmp_path, "x.jsonl")
    uri = (tmp_path / "x.jsonl").as_uri()
    [found] = remote.histories(store, Uri(uri), print)
    with (
        pytest.raises(BadHistory, match=f"^{uri}, line 1: bad$"),
        remote.copied_history(store, found, None) as copy,
    ):
        raise BadHistory(f"{copy}, line 1: bad")


def test_a_file_that_has_changed(tmp_path: Path, store: Store) -> None:
    """A copy of another size than the listed one is not judged."""
    made(tmp_path, "x.jsonl")
    [found] = remote.histories(store, Uri((tmp_path / "x.jsonl").as_uri()), print)
    (tmp_path / "x.jsonl").write_text("longer than before")
    with (
        pytest.raises(BadHistory, match="has changed: 18 of 7 bytes"),
        remote.copied_history(store, found, None),
    ):
        pass


@pytest.mark.parametrize(
    ("names", "why"),
    [
        (("plan.json/x", "history.jsonl"), "plan.json is a folder; it must be a regular file"),
        (("plan.json",), "is not a run's folder: it has no history.jsonl"),
    ],
)
def test_a_folder_that_is_refused(
    tmp_path: Path, store: Store, names: tuple[str, ...], why: str
) -> None:
    """The same sentences as for a folder of this machine."""
    made(tmp_path / "run", *names)
    with pytest.raises(BadHistory, match=why):
        remote.histories(store, Uri((tmp_path / "run").as_uri()), print)


def test_a_plan_that_is_too_large(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not copied."""
    made(tmp_path / "run", "plan.json", "history.jsonl")
    monkeypatch.setattr(run_folder, "PLAN_BYTES_MAX", 5)
    with pytest.raises(BadHistory, match=r"plan\.json has 9 bytes; the maximum is 5"):
        remote.histories(store, Uri((tmp_path / "run").as_uri()), print)
