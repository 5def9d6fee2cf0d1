import asyncio
import logging
import os
import signal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner

from broker_impl import __main__ as main
from broker_impl import config as configuration
from broker_impl.errors import StorageError
from broker_impl.node.exit_status import BAD_CONFIG, FAILED, OK, STORAGE_FAILED
from broker_impl.platform.idle_selector import IdleSelector
from tests.broker_impl.conftest import ZooKeeperInLoop, until


def run(*settings: str, properties: Path | None = None, mutants: tuple[str, ...] = ()) -> int:
    return main.run(properties, settings, mutants, None, reuse_port=False)


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (("broker.id",), "must be written as KEY=VALUE"),
        (("broker.id=1",), "zookeeper.connect: must be set"),
        (("broker.id=1", "zookeeper.connect=h:1", "port=x"), "port=x: must be a whole number"),
    ],
    ids=repr,
)
def test_a_bad_setting_is_64(
    settings: tuple[str, ...], text: str, caplog: pytest.LogCaptureFixture
) -> None:
    """An invalid setting exits with status 64, and one line says what would be valid."""
    assert run(*settings) == BAD_CONFIG
    assert [text in record.getMessage() for record in caplog.records] == [True]


def test_settings_without_effect_are_logged_before_anything_else(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Settings without effect are logged first: a misspelt name explains the error after it."""
    assert run("brokr.id=1", "zookeeper.connect=h:1", "num.io.threads=8") == BAD_CONFIG
    lines = [record.getMessage() for record in caplog.records]
    assert lines[0] == "unknown setting brokr.id is ignored; did you mean broker.id?"
    assert lines[1].endswith(": num.io.threads")
    assert lines[2:] == ["broker.id: must be set"]


def test_variables_count_more_than_the_file_and_less_than_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command line overrides environment variables, which override the properties file."""
    seen: list[configuration.BrokerConfig] = []

    async def serve(config: configuration.BrokerConfig, **options: Any) -> None:
        seen.append(config)

    monkeypatch.setattr(main, "serve", serve)
    monkeypatch.setattr(main, "tune_malloc", lambda: None)
    file = tmp_path / "server.properties"
    file.write_text("broker.id=1\nzookeeper.connect=file:1\nbroker.rack=file\n")
    variables = {"KAFKA_BROKER_RACK": "variable", "KAFKA_BROKER_ID": "2"}
    status = main.run(file, ("broker.id=3",), (), None, variables=variables, reuse_port=False)
    assert status == OK
    assert (seen[0].zookeeper_connect, seen[0].broker_rack, seen[0].broker_id) == (
        "file:1",
        "variable",
        3,
    )


@pytest.mark.parametrize(("flags", "status"), [([], BAD_CONFIG), (["--environment"], OK)])
def test_variables_are_read_only_when_asked_for(
    flags: list[str], status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Environment variables are read only with --environment.

    A stray KAFKA_ variable of the user's shell must not change a broker of the harness.
    """

    async def serve(config: configuration.BrokerConfig, **options: Any) -> None:
        assert config.broker_rack == "a"

    monkeypatch.setattr(main, "serve", serve)
    monkeypatch.setattr(main, "tune_malloc", lambda: None)
    environment = {"KAFKA_BROKER_RACK": "a", "KAFKA_ZOOKEEPER_CONNECT": "h:1"}
    done = CliRunner().invoke(main.main, ["--set", "broker.id=1", *flags], env=environment)
    assert done.exit_code == status


def test_an_unknown_mutant_or_file_is_64(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """An unknown mutant or a missing properties file exits with status 64."""
    assert run("broker.id=1", "zookeeper.connect=h:1", mutants=("no-such",)) == BAD_CONFIG
    assert run(properties=tmp_path / "nothing") == BAD_CONFIG
    assert len(caplog.records) == 2


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (StorageError("EIO"), STORAGE_FAILED),
        (AssertionError("out"), FAILED),
        (OSError("port"), FAILED),
        (ValueError("odd"), FAILED),
    ],
)
def test_only_a_failed_disk_is_74(
    error: Exception,
    status: int,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Only a storage error exits with status 74, any other error with 1.

    A broken invariant, a network error and an unexpected exception are not faults of the disk.
    Each error is one log record.
    """

    async def serve(*args: Any, **options: Any) -> None:
        raise error

    monkeypatch.setattr(main, "serve", serve)
    monkeypatch.setattr(main, "tune_malloc", lambda: None)
    assert run("broker.id=1", "zookeeper.connect=h:1") == status
    assert [str(error) in record.getMessage() for record in caplog.records] == [True]


async def test_a_broker_serves_until_sigterm(
    zookeeper: ZooKeeperInLoop, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The broker publishes its ports once it listens, and SIGTERM starts a controlled shutdown."""
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
    selector = IdleSelector()
    serving = asyncio.create_task(
        main.serve(config, idle=selector, port_file=ports, reuse_port=True)
    )
    await until(ports.exists)
    assert msgspec.json.decode(ports.read_bytes())["PLAINTEXT"] > 0
    os.kill(os.getpid(), signal.SIGTERM)
    await serving
    assert caplog.records[-1].getMessage() == "ZooKeeper session: CLOSED"
