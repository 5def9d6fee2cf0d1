"""The results of a gate and of its cases, and the file ``gate.json`` that stores them.

``gate.json`` is replaced atomically after each case. Readers therefore see a whole file, and so
does a user after the gate was killed; at most the case that was running is missing.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal

import msgspec

from checkers.verdict import Valid, merge
from harness.app import files
from harness.systems.catalogue import OURS

Status = Literal["valid", "invalid", "unknown", "failed", "skipped"]

STATUSES: tuple[Status, ...] = ("invalid", "failed", "unknown", "skipped", "valid")
"""All statuses, the most urgent first."""

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
    """True if the fault was measured to have taken effect."""


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One run of the matrix, or the reason why it was not run."""

    name: str
    """Unique within the gate: ``idempotent · kill · acks-1 · processes · seed 3``."""
    workload: str
    nemesis: tuple[str, ...]
    """The nemeses as in the suite file: ``("all",)`` stands for all that the target offers."""
    configuration: str
    target: str
    system: str = OURS
    """What was tested, as in a plan; files of older versions do not name it."""
    seed: int
    mutants: tuple[str, ...] = ()
    status: Status
    why: tuple[str, ...] = ()
    """The reasons for the status, one sentence each; empty for a valid case.

    They are the first finding of every illegal anomaly, missing evidence, the failure, or why the
    case was skipped.
    """
    excused: bool = False
    """Skipped on purpose, so that the gate may be valid without it.

    The machine cannot offer its target or its system, which the suite declares optional, or the
    command line names only systems that its target cannot run.
    """
    anomalies: dict[str, int] = {}
    allowed: dict[str, int] = {}
    evidence: dict[str, int] = {}
    folder: str | None = None
    """The run's folder, relative to the gate's; ``None`` if it was removed or never created."""
    began_s: float = 0.0
    """Seconds from the gate's beginning to the case's."""
    seconds: float = 0.0
    """The duration, including the start of the cluster and the judgement."""
    throughput_hz: float | None = None
    """Records acknowledged per second of the main phase."""
    unavailable_s: float | None = None
    """The longest time that any partition kept a waiting writer without an acknowledgement."""
    recovery_s: float | None = None
    """The longest recovery; ``None`` if one never recovered.

    A recovery lasts from a heal until the slowest partition acknowledged a write again, or from the
    end of all work until the cluster was whole.
    """
    faults: tuple[FaultProof, ...] = ()

    @property
    def kept(self) -> bool:
        """True if the run's folder was kept."""
        return self.folder is not None

    @property
    def faults_proved(self) -> int:
        return sum(fault.proved for fault in self.faults)

    @property
    def name_of_any_system(self) -> str:
        """The name without the system; cases that differ in nothing else have the same."""
        ending = f" · seed {self.seed}"
        return self.name.removesuffix(f" · {self.system}{ending}").removesuffix(ending) + ending


class Gate(msgspec.Struct, frozen=True, kw_only=True):
    """The content of ``gate.json``."""

    suite: str
    name: str
    """The name of the gate's folder; the folders of one results folder are siblings."""
    began: str
    """The start in UTC, ``2026-11-20T16:15:00Z``."""
    seconds: float = 0.0
    commit: str = ""
    versions: dict[str, str] = {}
    seed: int | None = None
    """The seed of the command line, which replaces the suite's; ``None`` if there was none."""
    mutants: tuple[str, ...] = ()
    """Mutants planted in every case, to test the gate itself."""
    budget_s: float | None = None
    planned: int = 0
    """The number of cases in the suite; while :attr:`cases` has fewer, the gate is not finished."""
    interrupted: bool = False
    valid: Valid = "unknown"
    cases: tuple[Case, ...] = ()

    @property
    def finished(self) -> bool:
        return len(self.cases) == self.planned

    @property
    def systems(self) -> tuple[str, ...]:
        """The systems of its cases, in order."""
        return tuple(dict.fromkeys(case.system for case in self.cases))

    def of_system(self, system: str) -> "Gate":
        """Return the gate with the cases of one system only."""
        cases = tuple(case for case in self.cases if case.system == system)
        return msgspec.structs.replace(self, cases=cases)

    def counts(self) -> dict[Status, int]:
        """Return the number of cases by status, without statuses that no case has."""
        found = Counter(case.status for case in self.cases)
        return {status: found[status] for status in STATUSES if found[status]}


def by_urgency(cases: Iterable[Case]) -> list[Case]:
    """Sort the cases by urgency, and then by their order; excused cases come last."""
    return sorted(cases, key=lambda case: (case.excused, STATUSES.index(case.status)))


def overall(cases: Iterable[Case], *, finished: bool) -> Valid:
    """Return the gate's verdict: false beats unknown beats true, as for verdicts of runs.

    A case that was not run is unknown unless it is excused; so is a gate in which no case was run.
    """
    cases = [case for case in cases if not case.excused]
    ended = finished and bool(cases)
    return merge([True if ended else "unknown", *(_VALID[case.status] for case in cases)])


def exit_status(gate: Gate) -> int:
    """Return the status of the whole gate: the worst of its cases.

    1 if any case is invalid, even if others failed; else 70 if a case failed or the gate was
    interrupted; else 2 if a case is unknown or did not fit into the budget; else 0.
    """
    if gate.valid is False:
        return 1
    if gate.interrupted or any(case.status == "failed" for case in gate.cases):
        return 70
    return 0 if gate.valid is True else 2


def write(folder: Path, gate: Gate) -> None:
    """Replace ``gate.json`` atomically: a reader sees the old file or the new one."""
    files.replace(folder / FILE, msgspec.json.format(msgspec.json.encode(gate), indent=2) + b"\n")


def read(folder: Path) -> Gate | None:
    """Return the gate of a folder; ``None`` if it has none that can be read."""
    try:
        return msgspec.json.decode((folder / FILE).read_bytes(), type=Gate)
    except (OSError, msgspec.DecodeError):
        return None


def earlier(folder: Path, suite: str) -> Sequence[Gate]:
    """Return the gates of the same suite in sibling folders, oldest first."""
    others = sorted(other for other in folder.parent.iterdir() if other.name != folder.name)
    found = [gate for other in others if (gate := read(other)) is not None and gate.suite == suite]
    return sorted(found, key=lambda gate: gate.began)
