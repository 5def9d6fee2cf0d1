"""Replay: repeats the plan of a run with the same seed and the same faults at the same times."""

from pathlib import Path

import msgspec

from harness.app import catalogue, plan_file, plan_resolution, run_folder, versions
from harness.app.refused import Refused
from model import masking
from model.plan import Plan


def plan_of(folder: Path) -> Plan:
    """Return the plan of a run's folder; raises :class:`Refused` if there is none."""
    path = folder / plan_file.NAME
    if (refusal := run_folder.refusal(folder, (path.name,))) is not None:
        raise Refused(refusal)
    try:
        plan = plan_file.read(folder)
    except OSError:
        raise Refused(f"{folder} is not a run's folder: it has no plan.json") from None
    if plan.schedule is None:
        raise Refused(f"{path}: the plan has no schedule, so there is nothing to repeat")
    if any(value == masking.MASK for part in (plan.broker, plan.producer, plan.consumer)
           for value in part.values()):  # fmt: skip
        raise Refused(f"{path}: a secret in this plan was masked; run the original plan file")
    return plan


def without_faults(plan: Plan) -> Plan | None:
    """Return the plan without its nemeses if no fault was scheduled; ``None`` for any other plan.

    A search runs such plans. A run of its own that expected a fault could only be UNKNOWN.
    """
    if plan.schedule or not plan.nemesis:
        return None
    return msgspec.structs.replace(plan, nemesis=())


def changed(plan: Plan) -> str | None:
    """Return, in one line, which versions differ from those that a simulated plan recorded.

    The history may then differ too. Returns ``None`` if all versions that the plan records are the
    same.
    """
    if plan.target != catalogue.SIMULATED.name:
        return None
    now = {"commit": versions.commit(), **versions.in_use()}
    others = [
        f"{name} is {now.get(name) or 'unknown'} and was {was}"
        for name, was in {"commit": plan.commit, **plan.versions}.items()
        if was and now.get(name) != was
    ]
    return f"the history may differ from the recorded one: {'; '.join(others)}" if others else None


def retarget(plan: Plan, name: str) -> Plan:
    """Return the same plan for another target: the same faults in the same order, and all settings.

    Options that only the former target has are left out. A client that the new target cannot run is
    replaced by one that it can. Raises :class:`Refused` for a fault that the new target does not
    offer.
    """
    plan_resolution.known("--target", name, catalogue.TARGETS)
    target, workload = catalogue.TARGETS[name], catalogue.WORKLOADS[plan.workload]
    if not target.owns_cluster and (refusal := target.refusal()) is not None:
        raise Refused(f"--target {name}: {refusal}")
    able = plan_resolution.offered(msgspec.structs.replace(plan, target=name))
    needed: dict[str, None] = {}
    for fault in plan.schedule or ():
        package = next(
            (name for name, each in catalogue.NEMESES.items() if fault.fault in each.names), None
        )
        if package not in able:
            raise Refused(
                f"--target {name}: this target does not offer fault {fault.id} ({fault.fault})"
            )
        needed[package] = None
    possible = {**workload.options, **target.options, **catalogue.system_of(plan).options}
    options = {key: value for key, value in plan.options.items() if key in possible}
    for client in plan_resolution.CLIENTS:
        if client in target.options and client in options:
            options[client] = target.options[client]
    return msgspec.structs.replace(
        plan, target=name, nemesis=tuple(needed) or (plan_resolution.NONE,), options=options
    )
