"""The configuration of the brokers' logs."""

from pathlib import Path

import javaproperties
import pytest

from harness.systems.apache_kafka import log4j
from harness.systems.apache_kafka.releases import PRODUCT
from harness.systems.java import lockfile

MAJOR = {1: "0.10.2.2", 2: "4.0.0"}
"""A release that uses each version of log4j."""


@pytest.mark.parametrize("version", [*lockfile.pinned(PRODUCT), "4.2.0-SNAPSHOT"])
def test_option_names_the_file_that_is_written(version: str, tmp_path: Path) -> None:
    """The option for the release's log4j contains the file's address; times are in UTC."""
    folder = tmp_path / "with space"
    folder.mkdir()
    path = log4j.write_configuration(version, folder)
    option, zone = log4j.logging_options(version, folder)
    is_log4j2 = lockfile.numbers(version) >= (4, 0)
    name = "log4j2.configurationFile" if is_log4j2 else "log4j.configuration"
    assert option == f"-D{name}={path.as_uri()}"
    assert " " not in option
    assert zone == "-Duser.timezone=UTC"


@pytest.mark.parametrize("major", [1, 2])
def test_info_is_logged_but_for_quiet_loggers(major: int, tmp_path: Path) -> None:
    """Everything is logged to standard output at INFO; the quiet loggers at WARN."""
    path = log4j.write_configuration(MAJOR[major], tmp_path, ["noisy", "noisier"])
    settings = javaproperties.loads(path.read_text())
    if major == 1:
        assert settings["log4j.rootLogger"] == "INFO, stdout"
        pattern = settings["log4j.appender.stdout.layout.ConversionPattern"]
        quiet = {name: settings[f"log4j.logger.{name}"] for name in ("noisy", "noisier")}
    else:
        assert settings["rootLogger.level"] == "INFO"
        assert settings["rootLogger.appenderRef.stdout.ref"] == settings["appender.stdout.name"]
        pattern = settings["appender.stdout.layout.pattern"]
        loggers = ("logger.quiet0", "logger.quiet1")
        quiet = {settings[f"{each}.name"]: settings[f"{each}.level"] for each in loggers}
    assert pattern == "[%d] %p %m (%c)%n"
    assert quiet == {"noisy": "WARN", "noisier": "WARN"}


def test_zookeeper_logs_of_its_own_server_are_kept(tmp_path: Path) -> None:
    """Without quiet loggers, as for a ZooKeeper server, its INFO lines are logged."""
    for version in MAJOR.values():
        assert "org.apache.zookeeper" in log4j.write_configuration(version, tmp_path).read_text()
        path = log4j.write_configuration(version, tmp_path, quiet=())
        assert "WARN" not in path.read_text()
