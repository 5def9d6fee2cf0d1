"""An engine that is absent, remote, hanging or refusing is reported in one sentence."""

import asyncio
import contextlib
import gc
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from docker.errors import APIError
from requests.exceptions import ReadTimeout

from harness.cluster.containers import engine
from harness.cluster.containers.engine import Engine, EngineError


class Client:
    """A stand-in for the SDK's client; each test supplies the call."""

    def close(self) -> None:
        """Do nothing: no connection is open."""


@pytest.fixture
def asked() -> Iterator[Engine]:
    made = Engine(Client())
    yield made
    made.close()


@pytest.mark.parametrize("where", ["tcp://10.0.0.1:2376", "ssh://me@there", "tcp://127.0.0.1:2375"])
def test_an_engine_elsewhere_is_refused(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine on another machine is refused: clients would not find the ports it publishes."""
    monkeypatch.setenv("DOCKER_HOST", where)
    told = engine.refusal()
    assert told is not None
    assert where in told
    assert "\n" not in told


def test_no_engine_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sentence names the address at which no engine answers, and the reason."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    told = engine.refusal()
    assert told is not None
    assert f"{tmp_path}/none.sock (No such file or directory)" in told
    assert "\n" not in told


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_engine_that_hangs_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An engine that accepts connections but never answers is an error after the time-out."""
    monkeypatch.setattr(engine, "CONNECT_TIMEOUT_S", 0.1)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/e.sock")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as silent:
        silent.bind(f"{tmp_path}/e.sock")
        silent.listen()
        with pytest.raises(EngineError, match="no container engine answers"):
            engine.connect()
        gc.collect()  # the SDK does not close the socket after a failure


async def test_a_call_answers_in_a_thread_of_the_engine_s(asked: Engine) -> None:
    """A call runs in a thread of the engine's own pool, so that the loop is not blocked."""
    assert (await asked.call(threading.current_thread)).name.startswith("engine")


@pytest.mark.parametrize(
    ("error", "told", "status"),
    [
        (APIError("x", explanation="is not running"), "is not running", None),
        (ReadTimeout("30 s"), "ReadTimeout: 30 s", None),
        (OSError(5, "input/output"), "input/output", None),
    ],
)
async def test_what_the_sdk_raises_is_an_engine_error(
    asked: Engine, error: Exception, told: str, status: int | None
) -> None:
    """Every exception of the SDK becomes an EngineError."""

    def fails() -> None:
        raise error

    with pytest.raises(EngineError, match=told) as raised:
        await asked.call(fails)
    assert raised.value.status == status


async def test_what_nobody_waits_for_still_comes_to_its_end(asked: Engine) -> None:
    """A cancelled call may still create something, so `settle` waits for it before the removal."""
    made: list[str] = []

    def slow() -> Any:
        time.sleep(0.1)
        made.append("container")

    call = asyncio.create_task(asked.call(slow))
    await asyncio.sleep(0.01)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert made == []
    await asked.settle()
    assert made == ["container"]


def test_who_asks_for_no_container_waits_for_no_sdk() -> None:
    """The command line and the other targets do not import the Docker SDK."""
    program = "import sys, harness.app.cli, harness.app.catalogue; print('docker' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert told.stdout.strip() == b"False"
