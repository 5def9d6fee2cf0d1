"""Judges signs of broken nodes: one that no fault explains makes the verdict unknown.

A node that exits is a ``crash`` already. A broken node that continues to run, such as a broker
whose thread ended for lack of memory, breaks no promise by itself, but a run with it does not show
how the system behaves under the faults of the plan.
"""

from collections.abc import Iterable, Sequence

from checkers.facts import Fault
from checkers.kernels.found import at
from model.node_sign import FILE, Kind, NodeSign

AFTER_NS = 3_000_000_000
"""How long after the end of a fault a sign may still follow from it."""
SENTENCES_MAX = 12
"""The number of sentences of a verdict; further signs are only counted."""

_EXPLAINED: dict[str, tuple[Kind, ...]] = {"disk-full": ("disk-full", "fatal-error")}
"""The signs that a broker may show because of a fault, by the fault's name."""
_SHOWS: dict[Kind, str] = {
    "jvm-crash": "the JVM of {node} crashed",
    "out-of-memory": "{node} was out of memory",
    "disk-full": "the disk of {node} was full or failed",
    "dead-thread": "a thread of {node} ended because of an error",
    "fatal-error": "{node} had a fatal error",
    "unexpected-error": "{node} had an unexpected error",
}


def reasons(signs: Iterable[NodeSign], faults: Sequence[Fault]) -> list[str]:
    """Return the signs that no fault explains, a sentence for each node and kind of sign."""
    found: dict[tuple[str, Kind], list[NodeSign]] = {}
    for sign in signs:
        if not any(is_explained(sign, fault) for fault in faults):
            found.setdefault((sign.node, sign.kind), []).append(sign)
    sentences = [_sentence(same) for same in found.values()]
    if left := sentences[SENTENCES_MAX:]:
        return [*sentences[:SENTENCES_MAX], f"{len(left)} more signs are in {FILE}"]
    return sentences


def is_explained(sign: NodeSign, fault: Fault) -> bool:
    """Return whether a node shows a sign because of this fault.

    The fault must have hit that node, and the whole sign must be within the time of the fault or
    shortly after it. A sign without a time is not explained.
    """
    if sign.kind not in _EXPLAINED.get(fault.fault, ()) or sign.node not in _names(fault.targets):
        return False
    if sign.time_ns is None or sign.last_ns is None:
        return False
    return sign.time_ns >= fault.from_ns and (
        fault.to_ns is None or sign.last_ns <= fault.to_ns + AFTER_NS
    )


def _names(targets: object) -> Sequence[object]:
    return targets if isinstance(targets, list) else [targets]


def _sentence(same: Sequence[NodeSign]) -> str:
    """Describe the signs of one node and kind by the first of them."""
    first = same[0]
    when = "at an unknown time" if first.time_ns is None else f"at {at(first.time_ns)}"
    count = sum(sign.count for sign in same)
    times = f" (the first of {count:,} lines)" if count > 1 else ""
    return f"{_SHOWS[first.kind].format(node=first.node)} {when}: {first.line}{times}"
