"""Which objects in the engine are strays, and which process decides that."""

import os
import subprocess
import sys

import psutil
import pytest

from harness.cluster.containers import labels
from harness.cluster.registry import Known, known


def gone() -> Known:
    """Return the entry of a process that has ended."""
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        entry = known(process.pid)
        process.communicate()
    assert entry is not None
    return entry


def of(owner: Known) -> dict[str, str]:
    return {
        labels.RUN: "run",
        labels.OWNER: str(owner.pid),
        labels.STARTED: owner.started,
        **labels.place(),
    }


def test_what_lives_is_nobody_s_to_take() -> None:
    """Objects of a running process are no strays, and carry the run's name and its process id."""
    ours = labels.of_run("a-run")
    assert ours[labels.RUN] == "a-run"
    assert ours[labels.OWNER] == str(os.getpid())
    assert not labels.is_stray(ours)


def test_what_a_dead_process_has_left_is_stray() -> None:
    """Objects whose owner has ended on this host, in this namespace, are strays."""
    assert labels.is_stray(of(gone()))


def test_a_recycled_id_does_not_keep_strays_alive() -> None:
    """A process with the owner's id but another start time is not the owner."""
    assert labels.is_stray(of(Known(pid=os.getpid(), started="boot:1")))


@pytest.mark.parametrize(
    "changes",
    [
        {labels.HOST: "elsewhere"},
        {labels.NAMESPACE: "pid:[1]"},
        {labels.OWNER: "nobody"},
        {labels.STARTED: ""},
        {labels.STARTED: "1795207384.88"},
    ],
)
def test_who_cannot_be_looked_for_is_let_be(changes: dict[str, str]) -> None:
    """Objects of another host, another PID namespace or with invalid labels are no strays."""
    assert not labels.is_stray(of(gone()) | changes)


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="others know the time of day alone"
)
def test_a_clock_that_is_set_orphans_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Setting the clock changes the boot time that the kernel reports, but makes no strays."""
    ours = labels.of_run("a-run")
    boot_s = psutil.boot_time()
    monkeypatch.setattr(psutil._pslinux, "boot_time", lambda: boot_s + 7)
    assert not labels.is_stray(ours)


@pytest.mark.parametrize("found", [None, {}, {labels.RUN: "compose"}])
def test_without_an_owner_it_is_nobody_s(found: dict[str, str] | None) -> None:
    """Objects without an owner, such as the compose file's cluster, are never strays."""
    assert not labels.is_stray(found)
