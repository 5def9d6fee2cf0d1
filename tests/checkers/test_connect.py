"""Sessions on a Spark Connect server, without one; with one: test_standalone_cluster.py."""

import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from checkers import connect, session
from checkers.engine import Engine, NoSpark


def test_a_server_that_does_not_answer(tmp_path: Path) -> None:
    """The client does not wait for minutes, and leaves no file."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
        engine = Engine.of(None, (), f"sc://127.0.0.1:{port}")
        with pytest.raises(NoSpark, match=f"no Spark Connect server answers at {engine.remote}"):
            session.start(tmp_path, engine=engine)
    assert not list(tmp_path.iterdir())


def test_a_session_lives_as_long_as_its_server(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session that was stopped, or whose server is gone, runs no more jobs."""
    ended: list[str] = []
    fake: Any = SimpleNamespace(
        session_id="1", is_stopped=False, interruptAll=lambda: None, stop=lambda: ended.append("1")
    )
    assert session.is_remote(fake)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setitem(connect._addresses, "1", server.getsockname())
        assert session.is_alive(fake)
    assert not session.is_alive(fake)
    with socket.create_server(("127.0.0.1", 0)) as server:
        monkeypatch.setitem(connect._addresses, "1", server.getsockname())
        session.stop(fake)
        assert ended == ["1"]
        assert not session.is_alive(fake)
