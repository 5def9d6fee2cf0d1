"""``check --model`` judges files of other data types, one by one or by folders."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from harness.app import large_lists
from tests.harness.app.cli.conftest import Call

GOOD = """
{:process 0, :type :invoke, :f :write, :value 1}
{:process 0, :type :ok, :f :write, :value 1}
{:process 1, :type :invoke, :f :read, :value nil}
{:process 1, :type :ok, :f :read, :value 1}
"""
BAD = GOOD.replace(":f :read, :value 1", ":f :read, :value 0")


def test_a_file(tmp_path: Path, call: Call) -> None:
    """The exit status is that of the verdict, and an illegal operation is explained."""
    path = tmp_path / "history.edn"
    path.write_text(GOOD)
    status, out, err = call("check", str(path), "--model", "cas-register")
    assert (status, err) == (0, "")
    assert out == f"VALID    {path} (cas-register, 2 operations)\n"
    path.write_text(BAD)
    status, out, err = call("check", str(path), "--model", "register")
    assert (status, err) == (1, "")
    assert "it read 0, and the register held 1" in out
    page = tmp_path / "page.html"
    status, out, _ = call("check", str(path), "--model", "register", "--page", str(page))
    assert (status, out.splitlines()[-1]) == (1, f"page: {page}")
    assert "it read 0, and the register held 1" in page.read_text()


def test_folders_and_patterns(tmp_path: Path, call: Call) -> None:
    """Each file has its line, the last line counts them, and the worst verdict counts. A file that
    cannot be read is unknown."""
    for name, text in (("a.edn", GOOD), ("b/c.edn", BAD), ("d.edn", "{:type"), ("e.md", "")):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    status, out, _ = call("check", str(tmp_path), "--model", "register")
    assert status == 1
    assert [line.split()[0] for line in out.splitlines() if not line.startswith(" ")] == [
        "VALID",
        "INVALID",
        "UNKNOWN",
        "3",
    ]
    assert out.splitlines()[-1] == "3 files: 1 INVALID, 1 UNKNOWN, 1 VALID"
    status, out, _ = call("check", f"{tmp_path}/[ad].edn", "--model", "register", "--json")
    assert status == 2
    found = json.loads(out)
    assert [each["verdict"]["valid"] for each in found] == [True, "unknown"]
    assert found[1]["verdict"]["unknown_because"] == f"{tmp_path / 'd.edn'} has no events"


def test_options_of_models(tmp_path: Path, call: Call) -> None:
    """Keys, first values and budgets have their effect."""
    path = tmp_path / "history.json"
    events = [
        {"process": n, "type": kind, "f": f, "value": ["x", value]}
        for n, (kind, f, value) in enumerate(
            [("ok", "read", 5), ("ok", "cas", [5, 6]), ("ok", "read", 6)]
        )
    ]
    path.write_text("\n".join(map(json.dumps, events)))
    asked = ("check", str(path), "--model", "cas-register", "--keyed")
    assert call(*asked)[0] == 1
    assert call(*asked, "--initial", "5")[0] == 0
    writes = [{"process": n, "type": "invoke", "f": "write", "value": n % 3} for n in range(6)]
    read = {"process": 6, "type": "ok", "f": "read", "value": 2}
    path.write_text("\n".join(map(json.dumps, [*writes, read])))
    little = ("check", str(path), "--model", "register", "--steps", "1", "--memory", "1")
    status, out, _ = call(*little)
    assert (status, "budget of 1 steps" in out) == (2, True)
    assert call(*little[:-4])[0] == 0


def test_transactions(tmp_path: Path, call: Call) -> None:
    """A consistency decides what is illegal; the output says which models are ruled out. Events of
    transactions need no name."""
    path = tmp_path / "history.edn"
    path.write_text(
        """{:process 0, :type :invoke, :value [[:r x nil] [:append y 1]]}
        {:process 1, :type :invoke, :value [[:r y nil] [:append x 1]]}
        {:process 0, :type :ok, :value [[:r x nil] [:append y 1]]}
        {:process 1, :type :ok, :value [[:r y nil] [:append x 1]]}
        {:process 2, :type :ok, :value [[:r x [1]] [:r y [1]]]}"""
    )
    asked = ("check", str(path), "--model", "list-append")
    status, out, err = call(*asked)
    assert (status, err) == (1, "")
    first, why, ruled_out = out.splitlines()
    assert first == f"INVALID  {path} (list-append, 3 operations): G2-item: 1"
    assert why.startswith("  G2-item: Let T1 = r x nil, append y 1 (event 2), T2 = ")
    assert ruled_out == "  this rules out repeatable-read, and 3 stronger models"
    status, out, _ = call(*asked, "--consistency", "snapshot-isolation")
    assert (status, out.splitlines()[-1]) == (0, "  found, and allowed: G2-item: 1")
    several = ("--consistency", "snapshot-isolation", "--anomaly", "G2-item")
    assert call(*asked, *several)[0] == 1
    registers = ("check", str(path), "--model", "rw-register", "--assume", "wfr-keys")
    status, out, _ = call(*registers)
    assert (status, "unexpected micro-operation" in out) == (2, True)


def test_reads_of_which_is_not_known_what_they_saw(tmp_path: Path, call: Call) -> None:
    """A history is not illegal because 0 is the initial state, and was written as well; what other
    reads show is illegal all the same."""
    path = tmp_path / "history.txt"
    asked = ("check", str(path), "--model", "sessions")
    text = "r(1,0,0,1)\nw(1,0,0,2)\nr(1,0,1,3)\n"
    for more, status, said in (
        ("", 2, "0 is also written to a key, so that it is not known what reads of 0 saw"),
        ("r(2,7,1,4)\n", 1, "read 2 as 7, which no transaction wrote"),
    ):
        path.write_text(text + more)
        found, out, _ = call(*asked)
        assert (found, said in out) == (status, True), out
    path.write_text(text.replace("r(1,0,0,1)\n", ""))
    assert call(*asked)[0] == 0


def test_wrong_requests(tmp_path: Path, call: Call) -> None:
    """One sentence says what is wrong."""
    path = tmp_path / "history.edn"
    path.write_text(GOOD)
    for arguments, message in (
        ((str(path), "--model", "x"), "--model x: it must be one of register, "),
        ((str(path), "--keyed"), "--keyed needs --model"),
        ((str(path), "--anomaly", "G0"), "--anomaly needs --model"),
        ((str(path), "--model", "list-append", "--anomaly", "x"), "'x' is not an anomaly"),
        ((str(path), "--model", "set"), "event 0: write is not an operation of this model"),
        ((str(path), "--model", "register", "--initial", "{"), "--initial { is not JSON"),
        ((str(path), "--model", "stack", "--initial", "1"), "stack has no initial value to choose"),
        ((str(path), "--model", "register", "--strict"), "--strict has no effect with --model"),
        ((str(path), "--model", "set", "--consistency", "zookeeper"), "has no consistency to"),
        ((str(tmp_path / "no"), "--model", "register"), "cannot be read: No such file"),
        ((f"{tmp_path}/*.json", "--model", "register"), "matches no file"),
        ((str(path), str(path), "--model", "register", "--page", "x"), "--page is about one"),
        (
            (str(path), str(path), "--model", "register", "--pictures", str(tmp_path / "x")),
            "--pictures is about one history, and these are 2",
        ),
        (
            (str(path), "--model", "register", "--pictures", str(path / "x")),
            f"--pictures {path / 'x'}: Not a directory",
        ),
        ((str(path), "--model", "register", "--pictures", str(path)), "is a file"),
        ((str(path), "--pictures", str(tmp_path)), "--pictures needs --model"),
    ):
        status, _, err = call("check", *arguments)
        assert (status, err.count("\n"), message in err) == (64, 1, True), (arguments, err)


def test_pictures(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each drawing is written into the folder, which is made, and named in the output. A folder
    without permission is refused before the history is judged."""
    path, folder = tmp_path / "history.edn", tmp_path / "new" / "folder"
    path.write_text(BAD)
    asked = ("check", str(path), "--model", "register", "--pictures", str(folder))
    picture = folder / "history-operations.svg"
    status, out, _ = call(*asked)
    assert (status, out.splitlines()[-1]) == (1, f"picture: {picture}")
    assert [*folder.iterdir()] == [picture]
    assert json.loads(call(*asked, "--json")[1])["pictures"] == [str(picture)]
    path.write_text(GOOD)
    status, out, _ = call(*asked)
    assert (status, out.splitlines()[-1]) == (0, "picture: none")
    assert "pictures" not in json.loads(call(*asked, "--json")[1])
    monkeypatch.setattr("os.access", lambda _, mode: mode != os.W_OK)
    status, out, err = call(*asked)
    assert (status, out) == (64, "")
    assert f"'--pictures': Directory '{folder}' is not writable." in err


def test_parquet(tmp_path: Path, call: Call) -> None:
    """A history is written as a Parquet file, which has the same verdict, with the same reason."""
    path, target = tmp_path / "history.edn", tmp_path / "history.parquet"
    path.write_text(BAD)
    status, out, _ = call("check", str(path), "--model", "register", "--parquet", str(target))
    assert (status, call("check", str(target), "--model", "register")[0]) == (1, 1)
    again = call("check", str(target), "--model", "register")[1]
    assert again == out.replace(str(path), str(target))
    status, _, err = call("check", str(path), "--model", "set", "--parquet", str(target))
    assert (status, "--parquet is for models of linearizability and list" in err) == (64, True)
    status, _, err = call("check", str(target), "--model", "register", "--parquet", str(path))
    assert (status, "is a Parquet file already" in err) == (64, True)
    status, _, err = call("check", str(path), "--parquet", str(target))
    assert (status, "--parquet needs --model" in err) == (64, True)


LISTS = """
{:process 0, :type :invoke, :f :txn, :value [[:append x 1]]}
{:process 0, :type :ok, :f :txn, :value [[:append x 1]]}
{:process 1, :type :invoke, :f :txn, :value [[:r x nil]]}
{:process 1, :type :ok, :f :txn, :value [[:r x []]]}
{:process 1, :type :invoke, :f :txn, :value [[:r x nil]]}
{:process 1, :type :ok, :f :txn, :value [[:r x [1]]]}
"""


def test_lists_in_parquet(tmp_path: Path, call: Call, monkeypatch: pytest.MonkeyPatch) -> None:
    """Transactions on lists keep their verdict and its reason; no other model judges them."""
    path, target = tmp_path / "history.edn", tmp_path / "history.parquet"
    path.write_text(LISTS)
    status, out, _ = call("check", str(path), "--model", "list-append", "--parquet", str(target))
    assert (status, "G-single-item-realtime: 1" in out) == (1, True)
    asked = ("check", str(target), "--model", "list-append", "--inline")
    assert call(*asked)[:2] == (1, out.replace(str(path), str(target)))
    assert call(*asked, "--consistency", "serializable")[0] == 0
    for model in ("register", "rw-register", "sessions", "bank"):
        status, _, err = call("check", str(target), "--model", model)
        assert (status, f"transactions on lists, not of {model}" in err) == (64, True)
    status, _, err = call(*asked, "--spark-master", "local[1]")
    assert (status, "--inline: it judges without Spark" in err) == (64, True)
    monkeypatch.setattr(large_lists, "_fits", lambda path: False)
    monkeypatch.setattr(large_lists, "_on_spark", _broken)
    status, out, _ = call("check", str(target), "--model", "list-append")
    assert (status, "the checkers crashed: RuntimeError: no worker" in out) == (2, True)


@contextmanager
def _broken(path: Path) -> Iterator[None]:
    raise RuntimeError("no worker")
    yield
