"""Sessions on a Spark Connect server, without one; with one: test_standalone_cluster.py."""

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers import connect, session
from checkers.engine import Engine, NoSpark


@pytest.mark.parametrize("is_open", [False, True])
def test_a_server_that_does_not_answer(
    is_open: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The client does not wait for minutes, leaves no file, and names no token."""
    monkeypatch.setattr(connect, "ANSWER_S", 0.3)
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        if is_open:
            port.listen()
        name = f"sc://127.0.0.1:{port.getsockname()[1]}"
        engine = Engine.of(None, (), f"{name}/;x-token=secret")
        with pytest.raises(NoSpark) as refused:
            session.start(tmp_path, engine=engine)
    assert str(refused.value) == f"no Spark Connect server answers at {name}"
    assert not list(tmp_path.iterdir())


def test_a_session_lives_as_long_as_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that was stopped or forgotten, or whose server is gone, runs no more jobs."""
    answers, ended, known = [True], list[str](), ["UTC"]
    fake: Any = SimpleNamespace(
        session_id="1",
        is_stopped=False,
        conf=SimpleNamespace(get=lambda _: known[0]),
        client=SimpleNamespace(close=lambda: ended.append("closed")),
        interruptAll=lambda: None,
        stop=lambda: ended.append("stopped"),
    )
    monkeypatch.setattr(connect, "_answers", lambda _: answers[0])
    monkeypatch.setattr(connect, "_urls", {"1": "sc://h"})
    assert session.is_remote(fake)
    assert session.is_alive(fake)
    known.clear()
    assert not session.is_alive(fake), "the server has forgotten it"
    known.append("UTC")
    answers[0] = False
    assert not session.is_alive(fake)
    session.stop(fake)
    assert ended == ["closed"], "no request that nothing answers"
    answers[0] = True
    assert not session.is_alive(fake)
    monkeypatch.setattr(connect, "_urls", {"1": "sc://h"})
    session.stop(fake)
    assert ended == ["closed", "stopped"]


def test_shares_have_all_rows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each row is in the share of its bucket, in the order of the table."""
    monkeypatch.setattr(connect, "CHUNK_ROWS", 7)
    rows = pa.table({"bucket": [n * 5 % 11 for n in range(50)], "row": range(50)})
    pq.write_table(rows, tmp_path / "rows.parquet")
    connect.write_shares(tmp_path / "rows.parquet", tmp_path / "rows.arrow", 3)
    file = pa.ipc.open_file(tmp_path / "rows.arrow")
    for share in range(3):
        batches = [file.get_batch(n) for n in range(share, file.num_record_batches, 3)]
        found = pa.Table.from_batches(batches)["row"].to_pylist()
        assert found == [n for n in range(50) if n * 5 % 11 % 3 == share]
