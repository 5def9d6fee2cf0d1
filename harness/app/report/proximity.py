"""Relates a moment of a run to its faults: those active then, or the one that ended last."""

from collections.abc import Sequence
from dataclasses import dataclass

from harness.app.report.faults import Fault


@dataclass(frozen=True, slots=True)
class Near:
    """A fault near a moment."""

    fault: Fault
    relation: str
    """The state of the fault at that moment, as a phrase that follows its name."""


def near(faults: Sequence[Fault], time_ns: int) -> list[Near]:
    """Return the faults that were active at a moment, or else the last one healed before it.

    The result is empty if no fault had been requested by then.
    """
    lasting = [Near(fault, text) for fault in faults if (text := _lasting(fault, time_ns))]
    if lasting:
        return lasting
    over = [fault for fault in faults if _end_ns(fault, time_ns) is not None]
    if not over:
        return []
    last = max(over, key=lambda fault: (_end_ns(fault, time_ns) or 0, fault.id))
    end_ns = _end_ns(last, time_ns) or 0
    did = "ended without effect" if last.applied_ns is None else "was healed"
    return [Near(last, f"{did} {_ago(time_ns - end_ns)} before")]


def _lasting(fault: Fault, time_ns: int) -> str:
    asked_ns = fault.applied_ns if fault.asked_ns is None else fault.asked_ns
    if asked_ns is None or time_ns < asked_ns:
        return ""
    if fault.applied_ns is None:
        return "" if fault.healed_ns is not None or fault.effect.how else "was being applied"
    if time_ns < fault.applied_ns:
        since, until = _ago(time_ns - asked_ns), _ago(fault.applied_ns - time_ns)
        return f"was being applied: requested {since} before, in effect {until} later"
    if fault.healed_ns is None:
        return f"had been in effect for {_ago(time_ns - fault.applied_ns)}, and was never healed"
    if time_ns > fault.healed_ns:
        return ""
    since, until = _ago(time_ns - fault.applied_ns), _ago(fault.healed_ns - time_ns)
    return f"had been in effect for {since}, and was healed {until} later"


def _end_ns(fault: Fault, time_ns: int) -> int | None:
    """Return when a fault ended, if before this moment; without effect it ended as it began."""
    end_ns = fault.asked_ns if fault.applied_ns is None else fault.healed_ns
    return end_ns if end_ns is not None and end_ns <= time_ns else None


def _ago(ns: int) -> str:
    """Format a time span briefly."""
    if ns < 1_000_000_000:
        return f"{ns / 1e6:,.0f} ms" if ns >= 1_000_000 else "less than 1 ms"
    return f"{ns / 1e9:,.1f} s"
