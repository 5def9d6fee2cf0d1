"""Skips tests that this machine cannot run, and lists the reasons at the end of the output."""

import gc
import logging
import os
import shutil
import subprocess
from collections import Counter
from collections.abc import Generator, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

settings.register_profile("untimed", deadline=None)
settings.load_profile("untimed")  # a busy machine may stop a process for long

GROUPS = {"spark": "spark", "cluster": "cluster", "docker": "cluster", "real_kafka": "cluster"}
"""The group of tests that run one after another, by marker."""
TRACED = ("broker_impl", "checkers")
"""The folders of tests whose code is measured by coverage, which doubles the time of a test."""
HERE = Path(__file__).resolve().parent
GROUND_TRUTH = Path(__file__).resolve().parent.parent.parent / "shared" / "data"


@cache
def docker_answers() -> bool:
    """Return whether a container engine answers the docker client."""
    docker = shutil.which("docker")
    if docker is None:
        return False
    try:
        answer = subprocess.run([docker, "info"], capture_output=True, check=False, timeout=10)
    except subprocess.TimeoutExpired:
        return False
    return answer.returncode == 0


def is_traced(item: pytest.Item) -> bool:
    """Return whether a test counts for coverage: a fast test in a folder that mirrors the code."""
    folder = item.path.relative_to(HERE).parts[0] if item.path.is_relative_to(HERE) else ""
    return folder in TRACED and not any(map(item.get_closest_marker, ("slow", *GROUPS)))


@pytest.hookimpl(tryfirst=True)  # xdist reads the groups in the same hook
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if not is_traced(item):
            item.add_marker("no_cover")
        for marker, group in GROUPS.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.xdist_group(group))
                break
        if item.get_closest_marker("docker") and not docker_answers():
            item.add_marker(pytest.mark.skip(reason="docker: no container engine answers"))
        if item.get_closest_marker("real_kafka") and shutil.which("mvn") is None:
            item.add_marker(pytest.mark.skip(reason="real_kafka: there is no mvn on PATH"))
        if item.get_closest_marker("ground_truth") and not GROUND_TRUTH.is_dir():
            item.add_marker(pytest.mark.skip(reason="ground_truth: there is no ../shared/data"))


@pytest.hookimpl(tryfirst=True)  # before pytest-cov begins to measure for the worker
def pytest_sessionstart(session: pytest.Session) -> None:
    """End what pytest-cov 7.1 begins to measure before it knows that it is in a worker.

    It begins once more for the worker. The first measurement is never read, but it goes on wherever
    the second one pauses, so that ``no_cover`` would save no time.
    """
    plugin = session.config.pluginmanager.getplugin("_cov")
    if hasattr(session.config, "workerinput") and plugin is not None and plugin.cov_controller:
        plugin.cov_controller.pause()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None]:
    """Keep the format of pytest's handlers.

    PySpark logs an error of SQL by loggers that do not propagate. pytest adds its handlers to such
    loggers when the next phase of a test begins, and these loggers change the format for good.
    """
    try:
        return (yield)
    finally:
        for name in ("SQLQueryContextLogger", "DataFrameQueryContextLogger"):
            if name in logging.root.manager.loggerDict:
                logging.getLogger(name).propagate = True


def skipped_lines(reasons: Iterable[str]) -> list[str]:
    """Return a line for each reason, with the number of tests that were skipped for it."""
    return [f"{count:4} skipped: {reason}" for reason, count in sorted(Counter(reasons).items())]


def _reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
    return text.removeprefix("Skipped: ")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    skipped = terminalreporter.stats.get("skipped", [])
    if skipped:
        terminalreporter.section("not run on this machine")
        for line in skipped_lines(map(_reason, skipped)):
            terminalreporter.write_line(line)


@pytest.fixture(scope="module", autouse=True)
def _short_collections() -> None:
    """Have the garbage collector leave out what the session keeps.

    A look at all its objects takes most of a second, in which servers of the same process seem dead
    to their clients. Simulations end the exemption, so each module begins it again.
    """
    if gc.get_freeze_count() == 0:
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session")
def repository() -> Path:
    """The project's folder."""
    return Path(__file__).resolve().parent.parent


@pytest.fixture
def project_environment(repository: Path) -> dict[str, str]:
    """The environment of a user who has the project's programs on PATH."""
    path = [str(repository / ".venv" / "bin"), str(repository / ".tools" / "bin")]
    return {**os.environ, "PATH": os.pathsep.join([*path, os.environ.get("PATH", os.defpath)])}


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One session for all tests that need a JVM."""
    from checkers import session

    folder = tmp_path_factory.mktemp("spark")
    started = session.start(folder)
    assert "Exception" not in (folder / ".spark" / "log").read_text()  # the output of the JVM
    yield started
    session.stop(started)
