"""The faults of a run: their targets and times, and how their effect was proved."""

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from model.roles import CLIENTS, ZOOKEEPER, broker

_KEEPER = re.compile(rf"{ZOOKEEPER}(?:-\d+)?|controller-\d+")
NODE = re.compile(rf"broker-\d+|{ZOOKEEPER}(?:-\d+)?|controller-\d+|{CLIENTS}")
PALETTE = (
    "#4c78c9", "#e0752d", "#8a5cc2", "#c94f6d", "#2a9d8f",
    "#b8860b", "#5f7f3a", "#c04fb0", "#3f9ac9", "#9a6b4f",
)  # fmt: skip

LATE_NS = 500_000_000
"""Shorter delays are not reported, because they do not change what a planned fault does."""


class Effect(msgspec.Struct, frozen=True):
    """Whether the fault's mechanism was measured to have worked, and how."""

    proved: bool = False
    how: str = ""


class Fault(msgspec.Struct, frozen=True):
    """A line of ``schedule.jsonl``; times are in nanoseconds since the run began."""

    id: int
    fault: str
    targets: Any = None
    asked_ns: int | None = None
    applied_ns: int | None = None
    healed_ns: int | None = None
    effect: Effect = Effect()
    late_ns: int | None = None
    """How much later than planned it was requested."""
    overran_ns: int | None = None
    """How much longer than planned it lasted."""

    def unpunctual(self) -> str:
        """Return by how much the fault deviated from its plan, if by at least :data:`LATE_NS`.

        Returns an empty string otherwise, and where an earlier version did not record it.
        """
        parts = ((self.late_ns, "late"), (self.overran_ns, "too long"))
        found = [f"{ns / 1e9:.1f} s {word}" for ns, word in parts if ns and ns >= LATE_NS]
        return ", ".join(found)

    def window_ns(self, end_ns: int) -> tuple[int, int] | None:
        """Return the time from apply to heal, or to the run's end; ``None`` if never applied."""
        if self.applied_ns is None:
            return None
        healed_ns = end_ns if self.healed_ns is None else self.healed_ns
        return self.applied_ns, max(self.applied_ns, healed_ns)


def load(path: Path) -> list[Fault]:
    """Return the faults of a ``schedule.jsonl`` by time; none if there is no file."""
    decoder = msgspec.json.Decoder(Fault)
    found = []
    for line in path.read_bytes().splitlines(keepends=True) if path.exists() else ():
        try:
            found.append(decoder.decode(line))
        except msgspec.DecodeError:
            if line.endswith(b"\n"):
                raise
    return sorted(found, key=lambda fault: (fault.applied_ns or fault.asked_ns or 0, fault.id))


def _strings(targets: Any) -> Iterator[str]:
    match targets:
        case str(text):
            yield text
        case dict(parts):
            for key, part in parts.items():
                yield str(key)
                yield from _strings(part)
        case list(parts):
            for part in parts:
                yield from _strings(part)
        case _:
            pass


def nodes(fault: Fault) -> list[str]:
    """Return the nodes that the targets name, at any depth of nesting; each once, in order."""
    named = dict.fromkeys(found for text in _strings(fault.targets) for found in NODE.findall(text))
    return list(named)


def spoken(targets: Any) -> str:
    """Format targets: names as they are, anything nested as compact JSON."""
    match targets:
        case None:
            return ""
        case str(text):
            return text
        case [*parts] if all(isinstance(part, str) for part in parts):
            return ", ".join(parts)
        case _:
            return msgspec.json.encode(targets).decode().replace('"', "")


def colours(faults: list[Fault]) -> dict[str, str]:
    """Assign a colour to each kind of fault; the same set of kinds has the same colours."""
    kinds = sorted({fault.fault for fault in faults})
    return {kind: PALETTE[place % len(PALETTE)] for place, kind in enumerate(kinds)}


def lanes(faults: list[Fault], brokers: int, others: Sequence[str] = (ZOOKEEPER,)) -> list[str]:
    """Return the lanes of the plot: all brokers, the ``others``, clients, other affected nodes."""
    known = [broker(number) for number in range(1, brokers + 1)]
    return list(dict.fromkeys([*known, *others, CLIENTS, *(n for f in faults for n in nodes(f))]))


def keepers(folder: Path) -> Sequence[str]:
    """Return the nodes of a run that keep the metadata; ZooKeeper if the folder does not say."""
    kept = sorted(path.name for path in folder.glob("nodes/*") if _KEEPER.fullmatch(path.name))
    return tuple(kept) if kept or any(folder.glob("nodes/broker-*")) else (ZOOKEEPER,)
