"""Replay: the plan of a run again, with the same seed and the same faults at the same times."""

from pathlib import Path

import msgspec

from harness.app.refused import Refused
from model.plan import Plan


def plan_of(folder: Path) -> Plan:
    """The plan of a run's folder; raises :class:`Refused` when there is none."""
    path = folder / "plan.json"
    try:
        plan = msgspec.json.decode(path.read_bytes(), type=Plan)
    except OSError:
        raise Refused(f"{folder} is not a run's folder: it holds no plan.json") from None
    except msgspec.MsgspecError as error:
        raise Refused(f"{path}: {error}") from None
    if plan.schedule is None:
        raise Refused(f"{path}: it holds no schedule, so that there is nothing to repeat")
    if any(value == "***" for part in (plan.broker, plan.producer, plan.consumer)
           for value in part.values()):  # fmt: skip
        raise Refused(f"{path}: a secret was masked in it; run it from its plan file")
    return plan
