import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager

import pytest

from broker_impl import health
from tests.broker_impl.conftest import ZooKeeperInLoop

RIGHT = b"\0\0\0\x0a\0\0\xfa\x17\0\0\0\0\0\0"


@contextmanager
def saying(answer: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A server that reads once from one connection, sends `answer`, closes; and what it read."""
    heard: list[bytes] = []
    with closing(socket.create_server(("127.0.0.1", 0))) as listener:

        def serve() -> None:
            connection, _ = listener.accept()
            with connection:
                heard.append(connection.recv(100))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listener.getsockname()[1], heard
        thread.join()


@pytest.mark.parametrize(
    ("kind", "answer", "status", "why"),
    [
        ("kafka", RIGHT, 0, ""),
        ("kafka", RIGHT[:4] + b"\0\0\0\x01" + RIGHT[8:], 1, "correlation id 1 and"),
        ("kafka", RIGHT[:8] + b"\0\x23" + RIGHT[10:], 1, "error 35"),
        ("kafka", RIGHT[:6], 1, "after 6 of 10 bytes"),
        ("kafka", b"HTTP/1.1 400 Bad Request", 1, "the response has"),
        ("zookeeper", b"imok", 0, ""),
        ("zookeeper", b"This server is not serving", 1, "the server answered b'This'"),
        ("zookeeper", b"", 1, "after 0 of 4 bytes"),
    ],
)
def test_only_the_right_answer_is_health(
    kind: str, answer: bytes, status: int, why: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """A target is healthy only if it sends the protocol's answer, not if it merely listens."""
    with saying(answer) as (port, heard):
        assert health.main([f"{kind}://127.0.0.1:{port}"]) == status
    assert heard == [b"ruok" if kind == "zookeeper" else health.api_versions_request()]
    assert why in capsys.readouterr().err


@pytest.mark.parametrize("target", ["", "kafka://", "http://127.0.0.1:80", "kafka://h:port"])
def test_what_cannot_be_asked_is_unwell(target: str, capsys: pytest.CaptureFixture[str]) -> None:
    """A target that is not an address fails the check, with the form of an address."""
    assert health.main([target]) == 1
    assert "must be kafka://host:port" in capsys.readouterr().err


def test_nobody_there_is_unwell(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused connection is status 1; without an argument the environment names the target."""
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        monkeypatch.setenv("FAULTLINE_HEALTH", f"kafka://127.0.0.1:{held.getsockname()[1]}")
        assert health.main([]) == 1


async def test_our_zookeeper_is_well(zookeeper: ZooKeeperInLoop) -> None:
    """The check succeeds on a running ZooKeeper server of this package."""
    command = [sys.executable, "-m", "broker_impl.health", f"zookeeper://{zookeeper.address}"]
    process = await asyncio.create_subprocess_exec(*command)
    assert await process.wait() == 0


def test_it_costs_little() -> None:
    """The check runs every few seconds for each broker, and loads the standard library only."""
    code = "import sys, broker_impl.health; print(*{m.split('.')[0] for m in sys.modules})"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"asyncio", "click", "msgspec", "logging"} & set(done.stdout.split())
