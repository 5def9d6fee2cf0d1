"""Who is told to be gone, and by whom."""

import os
import subprocess
import sys

import psutil
import pytest

from harness.cluster import labels
from harness.cluster.registry import Known, known


def gone() -> Known:
    """A process that was."""
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
    """Our own things are no strays, and carry the run's name and our id."""
    ours = labels.of_run("a-run")
    assert ours[labels.RUN] == "a-run"
    assert ours[labels.OWNER] == str(os.getpid())
    assert not labels.is_stray(ours)


def test_what_a_dead_process_has_left_is_stray() -> None:
    """The owner has gone, here where its id means something."""
    assert labels.is_stray(of(gone()))


def test_a_recycled_id_does_not_keep_strays_alive() -> None:
    """A process that lives under the owner's id but began at another time is a stranger."""
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
    """Another host, another namespace of ids, labels that make no sense: nothing is known."""
    assert not labels.is_stray(of(gone()) | changes)


@pytest.mark.skipif(
    not sys.platform.startswith("linux"), reason="others know the time of day alone"
)
def test_a_clock_that_is_set_orphans_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """The time of the boot, as the kernel tells it, moves with the clock."""
    ours = labels.of_run("a-run")
    boot_s = psutil.boot_time()
    monkeypatch.setattr(psutil._pslinux, "boot_time", lambda: boot_s + 7)
    assert not labels.is_stray(ours)


@pytest.mark.parametrize("found", [None, {}, {labels.RUN: "compose"}])
def test_without_an_owner_it_is_nobody_s(found: dict[str, str] | None) -> None:
    """The compose file's cluster has no owner, and is never taken away."""
    assert not labels.is_stray(found)
