"""Divides a run into phases: each begins when a fault is applied or healed.

A state is a branch of a rule together with the phase in which it is reached: a truncation is
common, and one after the heal of a partition of the controller is not.
"""

from collections.abc import Callable
from typing import Any

from model.op import NEMESIS, Op

Enter = Callable[[str, float], None]
"""Called at the beginning of a phase, with its name and the second of the run."""


class Phases:
    """An observer of a run's events that reports each phase."""

    def __init__(self, enter: Enter) -> None:
        self._enter = enter

    def __call__(self, op: Op) -> None:
        """Begin a phase if the event is the application or the heal of a fault."""
        if op.process != NEMESIS or op.type != "invoke" or not isinstance(op.value, dict):
            return
        phase = op.value.get("phase")
        if phase in ("apply", "heal"):
            what = f"{op.f} {role(op.value.get('targets'))}".rstrip()
            self._enter(f"{phase} {what}", op.time_ns / 1e9)


def role(targets: Any) -> str:
    """Return what kind of target a fault has: its role without a name, or the number of nodes."""
    if isinstance(targets, str):
        return targets.partition(":")[0].rstrip("0123456789-")
    return f"of {len(targets)}" if isinstance(targets, list | tuple) else ""
