"""Histories at URIs are judged as those of this machine; ``file:`` stands for other schemes."""

import bz2
import gzip
import random
from pathlib import Path
from typing import Any

import msgspec
import pyarrow.parquet as pq
import pytest

from bench.histories import World
from checkers import engine, history_file
from checkers.stores import Store
from harness.app import check, check_many, judgements, remote, remote_check, spark_judge
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.uris import Uri
from model import history
from model.history import BadHistory
from model.plan import Plan

pytestmark = pytest.mark.spark


@pytest.fixture(scope="module")
def store(spark: Any) -> Store:
    return Store(spark)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    """A history with defects."""
    path = tmp_path / "run" / "history.jsonl"
    path.parent.mkdir()
    world = World(random.Random(5), keys=5, lost=3, doubled=2, phantom=1, doubt=0.1, span=200)
    history.write(path, world.events(300))
    return path


class Copies:
    """Notes which histories were copied to this machine."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.names: list[str] = []
        copied = remote.copied_history

        def noted(store: Store, of: remote.Remote, folder: Path | None) -> Any:
            self.names.append(of.history.name)
            return copied(store, of, folder)

        monkeypatch.setattr(remote, "copied_history", noted)


@pytest.fixture
def copies(monkeypatch: pytest.MonkeyPatch) -> Copies:
    return Copies(monkeypatch)


@pytest.fixture
def all_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spark_judge, "LARGE_BYTES", {".jsonl": 1, ".parquet": 1})


def examined(path: Path, store: Store, spark: Any, results: Path) -> check.Examined:
    uri = Uri(f"file://{path}")  # for Hadoop, a percent sign is a plain character
    [found] = remote.histories(store, uri, print)
    with remote.copied_run(store, found) as folder:
        return remote_check.examined(
            found,
            folder,
            store,
            spark,
            settings={},
            progress=lambda step, done: None,
            results=results,
        )


def packed(text: Path, ending: str) -> Path:
    """Return the history in another file."""
    path = text.parent / f"copy{ending}"
    path.parent.mkdir(exist_ok=True)
    content = text.read_bytes()
    if ending == ".parquet":
        rows = history_file.read(text, lambda done: None)
        pq.write_table(rows, path, row_group_size=200)
    elif ending == ".other.parquet":
        rows = history_file.read(text, lambda done: None)
        pq.write_table(rows.append_column("host", rows["index"]), path)
    elif ending.endswith(".gz"):
        path.write_bytes(gzip.compress(content[:5000]) + gzip.compress(content[5000:]))
    elif ending.endswith(".bz2"):
        path.write_bytes(bz2.compress(content))
    else:
        path.write_bytes(content)
    return path


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize(
    ("ending", "is_copied"),
    [
        (".jsonl", False),
        (".parquet", False),
        (".jsonl.gz", False),
        (".jsonl.bz2", False),
        (".other.parquet", True),
        ("[1].jsonl", True),
        ("{x}/history.jsonl", True),
    ],
)
def test_a_large_file(
    text: Path, store: Store, spark: Any, copies: Copies, ending: str, is_copied: bool
) -> None:
    """Executors read it where it is, if Spark reads exactly what it has."""
    path = packed(text, ending)
    there = examined(path, store, spark, text.parent)
    here = check.examine(path, inline=True)
    assert there.judged.findings == here.findings
    assert there.judged.verdict.anomalies == here.verdict.anomalies
    assert there.judged.verdict.notes == here.verdict.notes
    assert there.judged.verdict.valid is False
    assert bool(copies.names) == is_copied


@pytest.mark.usefixtures("all_are_large")
@pytest.mark.parametrize("ending", [".jsonl.gz", ".jsonl.bz2", ".jsonl"])
@pytest.mark.parametrize("what", ["mark", "torn", "cut"])
def test_a_large_file_with_an_odd_end_or_beginning(
    text: Path, store: Store, spark: Any, ending: str, what: str
) -> None:
    """What Spark does not show exactly is read from a copy, with the same outcome."""
    content = text.read_bytes()
    text.write_bytes({"mark": b"\xef\xbb\xbf" + content, "torn": content[:-9]}.get(what, content))
    path = packed(text, ending)
    if what == "cut":
        path.write_bytes(path.read_bytes()[:-400])
    outcomes: list[Any] = []
    for is_there in (False, True):
        try:
            if is_there:
                judged = examined(path, store, spark, text.parent).judged
            else:
                judged = check.examine(path, inline=True)
            outcomes.append((judged.findings, judged.verdict.notes))
        except BadHistory as error:
            outcomes.append((str(error).replace(path.as_uri(), str(path)), []))
    assert outcomes[0] == outcomes[1]


def test_a_run(text: Path, tmp_path: Path, store: Store, spark: Any, copies: Copies) -> None:
    """Its plan counts, its verdict stays, and nothing is written into its folder."""
    run = text.parent
    (run / "plan.json").write_bytes(msgspec.json.encode(Plan(seed=7, producer={"acks": "0"})))
    before = {each.name for each in run.iterdir()}
    there = examined(run, store, spark, tmp_path)
    assert {each.name for each in run.iterdir()} == before
    assert copies.names == ["history.jsonl"]
    assert there.kept is not None
    assert there.kept.folder == tmp_path / "judgements" / "run" / "1"
    assert there.kept.note is not None
    assert f"Nothing is written to file://{run}." in there.kept.note
    here = check.examined(run, inline=True)
    assert there.judged.verdict.contract == here.judged.verdict.contract
    assert there.judged.findings == here.judged.findings
    again = examined(run, store, spark, tmp_path)
    assert again.kept is not None
    assert again.kept.folder == there.kept.folder, "the same judgement is stored once"
    assert judgements.read(there.kept.folder) is not None


def test_several_uris_and_paths(
    text: Path, tmp_path: Path, spark: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One session serves them all, and each has its report."""
    (text.parent / "plan.json").write_bytes(msgspec.json.encode(Plan(seed=7)))
    bare = tmp_path / "bare.jsonl"
    bare.write_bytes(text.read_bytes())

    class Opened:
        def __enter__(self) -> Any:
            return spark

        def __exit__(self, *error: object) -> None: ...

    monkeypatch.setattr(remote_check, "opened_session", Opened)
    said: list[str] = []
    request = check_many.Request(False, {}, tmp_path / "results")
    paths: list[Path | Uri] = [Uri(f"{tmp_path.as_uri()}/r*n"), bare]
    verdicts = check_many.judge_all(paths, request, Screen(), said.append)
    assert [verdict.valid for verdict in verdicts] == [False, False]
    page = tmp_path / "results" / "judgements" / "run" / "1" / "report.html"
    assert str(page) in said[0]
    assert "repeat:" not in said[0]
    assert page.is_file()


def test_what_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without a JVM of this command, no URI is read."""
    request = check_many.Request(True, {}, tmp_path)
    with pytest.raises(Refused, match=r"--inline: s3a://b/x can be read by Spark only"):
        check_many.judge_all([Uri("s3a://b/x")], request, Screen(), print)
    monkeypatch.setattr(engine, "_selected", [engine.Engine(remote="sc://localhost")])
    request = check_many.Request(False, {}, tmp_path)
    with pytest.raises(Refused, match="a server of Spark Connect does not list files"):
        check_many.judge_all([Uri("s3a://b/x")], request, Screen(), print)
