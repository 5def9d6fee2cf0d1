"""An engine that is not there, is elsewhere, hangs or refuses is told in one sentence."""

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

from harness.cluster import engine
from harness.cluster.engine import Engine, EngineError


class Client:
    """Stands for the SDK; what it is asked is what the test hands in."""

    def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def asked() -> Iterator[Engine]:
    made = Engine(Client())
    yield made
    made.close()


@pytest.mark.parametrize("where", ["tcp://10.0.0.1:2376", "ssh://me@there", "tcp://127.0.0.1:2375"])
def test_an_engine_elsewhere_is_refused(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ports would be published where clients do not look for them."""
    monkeypatch.setenv("DOCKER_HOST", where)
    told = engine.refusal()
    assert told is not None
    assert where in told
    assert "\n" not in told


def test_no_engine_is_one_sentence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It says where it was looked for, and why nobody answered."""
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    told = engine.refusal()
    assert told is not None
    assert f"{tmp_path}/none.sock (No such file or directory)" in told
    assert "\n" not in told


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_engine_that_hangs_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It accepts connections and says nothing: not waited for long."""
    monkeypatch.setattr(engine, "CONNECT_TIMEOUT_S", 0.1)
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/e.sock")
    with contextlib.closing(socket.socket(socket.AF_UNIX)) as silent:
        silent.bind(f"{tmp_path}/e.sock")
        silent.listen()
        with pytest.raises(EngineError, match="no container engine answers"):
            engine.connect()
        gc.collect()  # the SDK forgets the socket of a client that could not be made


async def test_a_call_answers_in_a_thread_of_the_engine_s(asked: Engine) -> None:
    """The loop is not blocked, and nobody else's threads are."""
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
    """Whatever it is, callers know one exception."""

    def fails() -> None:
        raise error

    with pytest.raises(EngineError, match=told) as raised:
        await asked.call(fails)
    assert raised.value.status == status


async def test_what_nobody_waits_for_still_comes_to_its_end(asked: Engine) -> None:
    """A call that was given up may make something: it can be waited for before all is removed."""
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
    """The command line and the other targets do not import it."""
    program = "import sys, harness.app.cli, harness.app.catalogue; print('docker' in sys.modules)"
    told = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert told.stdout.strip() == b"False"
