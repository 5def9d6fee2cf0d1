"""Turns options and files of a verb into a plan, and into a process that can run it."""

import dataclasses
import json
import os
import tomllib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click

from harness.app.refused import Refused
from harness.simulation import determinism


@dataclasses.dataclass(frozen=True)
class Program:
    """How the command line was started."""

    is_whole_process: bool
    """True if this process runs nothing else, so that it may be replaced by a pinned process."""


def pin(targets: Iterable[object]) -> None:
    """Replace this process with a pinned one if a target is simulated."""
    program = click.get_current_context().obj
    if "simulated" in targets and program.is_whole_process:
        try:
            determinism.exec_pinned()
        except determinism.PinError as error:
            raise Refused(f"--target simulated: {error}") from None


def select_cluster(path: Path | None, target: object, *, confirmed: bool) -> None:
    """Use the cluster file of the command line, which only the target ``external`` needs."""
    from harness.cluster.external import cluster_file

    if path is None:
        return
    if target != "external":
        raise Refused("--cluster: only --target external uses a cluster file")
    try:
        cluster_file.select(path, confirmed=confirmed)
    except cluster_file.BadClusterFile as error:
        raise Refused(str(error)) from None


def target_in(path: Path | None) -> object:
    """Return the target in a plan file or a run's plan; ``None`` if it cannot be read."""
    try:
        text = path.read_text() if path is not None and path.is_file() else ""
        document = json.loads(text) if path and path.suffix == ".json" else tomllib.loads(text)
        return document.get("target")
    except (OSError, ValueError, AttributeError, RecursionError):
        return None  # reported later, when the whole file is read


def plan_from(
    fields: dict[str, Any],
    settings: Sequence[str],
    mutants: Sequence[str],
    given: dict[str, Any],
) -> Any:
    """Return the plan with a file's fields, overridden by the command line."""
    from harness.app import plan_resolution

    fields = fields | {name: value for name, value in given.items() if value is not None}
    if (home := fields.pop("kafka_home", None)) is not None:
        fields.setdefault("system", _system_at(home))
    if (servers := fields.pop("zookeepers", None)) is not None:
        settings = [*settings, f"{plan_resolution.OPTIONS}.zookeepers={servers}"]
    if mutants:
        fields["mutants"] = tuple(mutants)
    fields = plan_resolution.override(fields, settings)
    return plan_resolution.plan_of(fields)


def _system_at(home: Path) -> str:
    """Return the name of the system in the folder of a distribution, which runs will use."""
    from harness.systems.apache_kafka import distribution
    from harness.systems.apache_kafka.system import HOME
    from harness.systems.catalogue import APACHE

    try:
        found = distribution.open_distribution(home)
    except distribution.DistributionError as error:
        raise Refused(f"--kafka-home {home}: {error}") from None
    os.environ[HOME] = str(home.resolve())
    return f"{APACHE}:{found.version}"
