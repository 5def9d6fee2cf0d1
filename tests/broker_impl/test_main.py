import asyncio
import logging
import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from broker_impl import __main__ as main
from broker_impl import config as configuration
from broker_impl.config import Endpoint
from broker_impl.errors import StorageError
from tests.broker_impl.conftest import ZooKeeperInLoop, until


def run(*settings: str, properties: Path | None = None, mutants: tuple[str, ...] = ()) -> int:
    return main.run(properties, settings, mutants, None, reuse_port=False)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (("broker.id",), "must be KEY=VALUE"),
        (("broker.id=1",), "zookeeper.connect: must be set"),
        (("broker.id=1", "zookeeper.connect=h:1", "no.such=1"), "unknown setting no.such"),
    ],
    ids=repr,
)
def test_a_bad_setting_is_64(
    settings: tuple[str, ...], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """One line says which, and what would be right."""
    assert run(*settings) == main.BAD_CONFIG
    assert [text in record.getMessage() for record in caplog.records] == [True]


def test_an_unknown_mutant_or_file_is_64(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A bug that nobody knows cannot be planted; a file that is not there cannot be read."""
    assert run("broker.id=1", "zookeeper.connect=h:1", mutants=("no-such",)) == main.BAD_CONFIG
    assert run(properties=tmp_path / "nothing") == main.BAD_CONFIG
    assert len(caplog.records) == 2


@pytest.mark.parametrize("error", [StorageError("EIO"), AssertionError("out"), OSError("port")])
def test_failures_are_1(
    error: Exception, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The disk, an invariant, the network: one record in the log each."""

    async def serve(*args: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(main, "serve", serve)
    monkeypatch.setattr(main, "tune_malloc", lambda: None)
    assert run("broker.id=1", "zookeeper.connect=h:1") == main.FAILED
    assert [str(error) in record.getMessage() for record in caplog.records] == [True]


async def test_a_broker_serves_until_sigterm(
    zookeeper: ZooKeeperInLoop, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The ports are told once it listens; a signal is a controlled shutdown."""
    caplog.set_level(logging.INFO)
    config = configuration.parse(
        {
            "broker.id": "1",
            "zookeeper.connect": zookeeper.address,
            "zookeeper.session.timeout.ms": "500",
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "log.dirs": str(tmp_path / "data"),
        }
    )
    ports = tmp_path / "ports"
    serving = asyncio.create_task(main.serve(config, port_file=ports, reuse_port=True))
    await until(ports.exists)
    assert msgspec.json.decode(ports.read_bytes())["PLAINTEXT"] > 0
    os.kill(os.getpid(), signal.SIGTERM)
    await serving
    assert caplog.records[-1].getMessage() == "ZooKeeper session: CLOSED"


def test_the_port_file_is_whole_or_not_there(tmp_path: Path) -> None:
    """It is renamed into place."""
    main.publish(tmp_path / "ports", [Endpoint("A", "h", 1), Endpoint("B", "h", 2)])
    assert msgspec.json.decode((tmp_path / "ports").read_bytes()) == {"A": 1, "B": 2}
    assert [path.name for path in tmp_path.iterdir()] == ["ports"]
