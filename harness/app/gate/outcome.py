"""What came of a gate and of each of its cases: values, and the one file that holds them.

``gate.json`` is replaced in one step after each case, so that whoever reads it, and whenever the
gate is killed, finds a whole one that lacks at most the case that was running.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from checkers.verdict import Valid, merge
from harness.app import files

Status = Literal["valid", "invalid", "unknown", "failed", "skipped"]

STATUSES: tuple[Status, ...] = ("invalid", "failed", "unknown", "skipped", "valid")
"""In the order in which they deserve a look."""

FILE = "gate.json"

_VALID: dict[Status, Valid] = {
    "valid": True,
    "invalid": False,
    "unknown": "unknown",
    "failed": "unknown",
    "skipped": "unknown",
}


class FaultProof(msgspec.Struct, frozen=True):
    """A fault that a case applied."""

    fault: str
    proved: bool
    """Was it measured to have bitten?"""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the matrix, or why there was none."""

    name: str
    """Unique within the gate, for people: ``idempotent · kill · acks-1 · processes · seed 3``."""
    workload: str
    nemesis: tuple[str, ...]
    """As the suite has it: ``("all",)`` stands for what the target offers."""
    configuration: str
    target: str
    seed: int
    mutants: tuple[str, ...] = ()
    status: Status
    why: tuple[str, ...] = ()
    """A sentence each: the first finding of every illegal anomaly, what evidence is missing, how it
    failed, or why it was skipped; empty for a valid case."""
    excused: bool = False
    """Skipped on purpose (the machine cannot offer its target, which the suite calls optional): the
    gate may be valid without it."""
    anomalies: dict[str, int] = {}
    allowed: dict[str, int] = {}
    evidence: dict[str, int] = {}
    folder: str | None = None
    """The run's folder, relative to the gate's; ``None`` when it has been removed, or never was."""
    began_s: float = 0.0
    """Since the gate began."""
    seconds: float = 0.0
    """Cluster start, work, judgement and all."""
    throughput_hz: float | None = None
    """Records acknowledged per second of the main phase."""
    unavailable_s: float | None = None
    """The longest time that any partition kept a waiting writer without an acknowledgement."""
    recovery_s: float | None = None
    """The longest that anything took to come back: from a heal until the slowest partition took a
    write again, and from the end of all work until the cluster was whole; ``None``: one never did.
    """
    faults: tuple[FaultProof, ...] = ()

    @property
    def kept(self) -> bool:
        """Is its folder still there?"""
        return self.folder is not None

    @property
    def faults_proved(self) -> int:
        return sum(fault.proved for fault in self.faults)


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """What ``gate.json`` holds."""

    suite: str
    name: str
    """Of its folder; those of one results folder lie beside each other."""
    began: str
    """UTC, ``2026-11-20T16:15:00Z``."""
    seconds: float = 0.0
    commit: str = ""
    versions: dict[str, str] = {}
    seed: int | None = None
    """The seed that was asked for in place of the suite's."""
    mutants: tuple[str, ...] = ()
    """Planted in every case, to try out the gate itself."""
    budget_s: float | None = None
    planned: int = 0
    """How many cases the suite has; with fewer in :attr:`cases` the gate is not at its end."""
    interrupted: bool = False
    valid: Valid = "unknown"
    cases: tuple[Case, ...] = ()

    @property
    def finished(self) -> bool:
        return len(self.cases) == self.planned

    def counts(self) -> dict[Status, int]:
        """How many cases ended how; those that nobody ended in are left out."""
        found = Counter(case.status for case in self.cases)
        return {status: found[status] for status in STATUSES if found[status]}


def by_urgency(cases: Iterable[Case]) -> list[Case]:
    """Those that deserve a look first, then in their order; what is excused comes last."""
    return sorted(cases, key=lambda case: (case.excused, STATUSES.index(case.status)))


def overall(cases: Iterable[Case], *, finished: bool) -> Valid:
    """The gate's own word: false beats unknown beats true, as for verdicts. Whatever was not tried
    is unknown unless it is excused; so is a gate in which nothing was tried."""
    cases = [case for case in cases if not case.excused]
    ended = finished and bool(cases)
    return merge([True if ended else "unknown", *(_VALID[case.status] for case in cases)])


def exit_status(gate: Gate) -> int:
    """1: something illegal was seen, whatever else went wrong. 70: a case failed, or the gate was
    interrupted. 2: a case is unknown or the budget did not reach. 0: all is valid."""
    if gate.valid is False:
        return 1
    if gate.interrupted or any(case.status == "failed" for case in gate.cases):
        return 70
    return 0 if gate.valid is True else 2


def write(folder: Path, gate: Gate) -> None:
    """``gate.json`` in one step: a reader sees the old one or the new one."""
    files.replace(folder / FILE, msgspec.json.format(msgspec.json.encode(gate), indent=2) + b"\n")


def read(folder: Path) -> Gate | None:
    """The gate of a folder; ``None`` where there is none that can be read."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Gate)
    except (OSError, msgspec.DecodeError):
        return None


def earlier(folder: Path, suite: str) -> Sequence[Gate]:
    """The gates of the same suite in the folders beside this one, oldest first."""
    others = sorted(other for other in folder.parent.iterdir() if other.name != folder.name)
    found = [gate for other in others if (gate := read(other)) is not None and gate.suite == suite]
    return sorted(found, key=lambda gate: gate.began)
