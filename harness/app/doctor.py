"""Examines a cluster without changing it: what it is, what it promises, which workloads it can run.

It uses Kafka's protocol without encryption and authentication.
"""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

import msgspec

from harness.app import catalogue
from harness.app.refused import Refused
from harness.cluster.address import Address
from harness.cluster.external import cluster_file, kinds
from harness.cluster.external.survey import Survey, Unreachable
from harness.cluster.external.survey import survey as survey_of
from harness.cluster.observe import cluster_config
from model.cluster_facts import ClusterFacts
from model.plan import Plan
from workloads import needs
from workloads.needs import Need

PORTS = range(1, 65536)
_SHOWN = (
    *("min.insync.replicas", "unclean.leader.election.enable", "default.replication.factor"),
    *("auto.create.topics.enable", "log.cleanup.policy", "log.retention.ms"),
    *("offsets.topic.replication.factor", "transaction.state.log.replication.factor"),
    *("transaction.state.log.min.isr", "transaction.max.timeout.ms"),
)
"""The settings in the text; JSON has all that were read."""


class Possibility(msgspec.Struct, frozen=True, kw_only=True):
    """A workload with its defaults, or a feature that options of workloads use."""

    name: str
    is_possible: bool
    missing: tuple[str, ...] = ()
    """What is missing: a feature with its KIP and API version, or a hook of the cluster file."""


class Container(msgspec.Struct, frozen=True, kw_only=True):
    """A container of a compose project that is a node, as its labels say."""

    node: str
    container: str
    address: str | None
    """Where the harness reaches it; ``None`` if no label, listener or published port says that."""
    clients_port: int | None
    """The port of the listener for clients; ``None``: its links of clients are never cut."""


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """What is known about a cluster."""

    cluster: ClusterFacts
    workloads: tuple[Possibility, ...]
    features: tuple[Possibility, ...]
    faults: tuple[Possibility, ...] = ()
    """The nemeses of the target ``external``, if there is a cluster file."""
    containers: tuple[Container, ...] = ()
    """The nodes that were found in the compose project of the cluster file."""
    warnings: tuple[str, ...]
    """Settings with which the cluster may lose acknowledged records, in sentences."""


def addresses(bootstrap: str) -> tuple[Address, ...]:
    """Return the addresses in ``host:port,…``. Raises :class:`~harness.app.refused.Refused`."""
    found = []
    for text in bootstrap.split(","):
        host, _, port = text.strip().rpartition(":")
        if not host or not port.isdecimal() or int(port) not in PORTS:
            raise Refused(f"--bootstrap {text.strip()}: an address must be host:port")
        found.append(Address(host.removeprefix("[").removesuffix("]"), int(port)))
    return tuple(found)


def examine(bootstrap: Sequence[Address], timeout_s: float = 5.0) -> Diagnosis | None:
    """Return what is known about the cluster; ``None`` if no broker answers."""
    cluster = asyncio.run(cluster_config.read(bootstrap, timeout_s=timeout_s))
    return diagnosis(cluster) if cluster.brokers else None


def examine_file(path: Path) -> Diagnosis | None:
    """Return what is known about the cluster of a cluster file; ``None`` if no broker answers.

    Raises :class:`~harness.app.refused.Refused`.
    """
    try:
        survey = survey_of(cluster_file.load(path))
    except Unreachable:
        return None
    except cluster_file.BadClusterFile as error:
        raise Refused(str(error)) from None
    return msgspec.structs.replace(
        diagnosis(survey.facts), faults=_faults(survey), containers=_containers(survey)
    )


def _containers(survey: Survey) -> tuple[Container, ...]:
    return tuple(
        Container(
            node=one.name,
            container=one.container,
            address=None if (at := survey.address(one.name)) is None else str(at),
            clients_port=one.clients_port,
        )
        for one in survey.loaded.containers.values()
    )


def _faults(survey: Survey) -> tuple[Possibility, ...]:
    found = []
    for name, package in catalogue.NEMESES.items():
        why = kinds.lacking(survey, package)
        found.append(
            Possibility(name=name, is_possible=why is None, missing=() if why is None else (why,))
        )
    return tuple(found)


def diagnosis(cluster: ClusterFacts) -> Diagnosis:
    """Return what follows from the facts about a cluster of brokers."""
    apis = {key: range(first, last + 1) for key, (first, last) in cluster.apis.items()}
    return Diagnosis(
        cluster=cluster,
        workloads=tuple(
            _possibility(name, workload.needs(_default_plan(name)), apis)
            for name, workload in catalogue.WORKLOADS.items()
            if workload.service == "kafka"
        ),
        features=tuple(_feature(need, apis) for need in needs.ALL),
        warnings=tuple(_warnings(cluster)),
    )


def _default_plan(name: str) -> Plan:
    workload = catalogue.WORKLOADS[name]
    return Plan(
        workload=name,
        options=dict(workload.options),
        producer=dict(workload.producer),
        consumer=dict(workload.consumer),
    )


def _possibility(name: str, wanted: Iterable[Need], apis: dict[int, range]) -> Possibility:
    missing = needs.missing(wanted, apis)
    return Possibility(name=name, is_possible=not missing, missing=tuple(map(str, missing)))


def _feature(need: Need, apis: dict[int, range]) -> Possibility:
    is_missing = bool(needs.missing([need], apis))
    api = f"{need.api} v{need.version} (KIP-{need.kip})"
    return Possibility(
        name=need.feature, is_possible=not is_missing, missing=(api,) if is_missing else ()
    )


def _warnings(cluster: ClusterFacts) -> list[str]:
    """Return which settings let acknowledged records be lost."""
    found = []
    settings = cluster.broker
    unclean = "unclean.leader.election.enable"
    if settings.get(unclean) == "true":
        found.append(f"{unclean} is true: elections may lose acknowledged records")
    if settings.get("min.insync.replicas") == "1":
        found.append("min.insync.replicas is 1: an acknowledged record may be on one disk only")
    if settings.get("default.replication.factor") == "1":
        found.append("default.replication.factor is 1: topics have no second replica by default")
    for name, topic in cluster.topics.items():
        if topic.replication_factor == 1 and len(cluster.brokers) > 1:
            found.append(f"{name} has one replica: its coordinators end with their broker")
        if topic.settings.get(unclean) == "true":
            found.append(f"{name}: {unclean} is true")
    for name, values in cluster.differing.items():
        shown = ", ".join(f"broker {number}: {value}" for number, value in values.items())
        found.append(f"{name} differs ({shown})")
    return found


def lines(diagnosed: Diagnosis) -> list[str]:
    """Return the diagnosis as text."""
    cluster = diagnosed.cluster
    return [
        *_cluster_lines(cluster),
        *_table(
            "brokers",
            [(str(one.id), f"{one.host}:{one.port}", one.rack or "") for one in cluster.brokers],
        ),
        *_table("nodes found by labels", [_container_row(one) for one in diagnosed.containers]),
        *_table("features", [(name, str(level)) for name, level in cluster.features.items()]),
        *_table(
            "broker settings",
            [(name, cluster.broker[name]) for name in _SHOWN if name in cluster.broker],
        ),
        *_topic_lines(cluster),
        *_table("workloads with their defaults", _possible_rows(diagnosed.workloads)),
        *_table("features of options", _possible_rows(diagnosed.features)),
        *_table("faults", _possible_rows(diagnosed.faults, "")),
        *_table("warnings", [(warning,) for warning in diagnosed.warnings]),
        *_table("not readable", [(reason,) for reason in cluster.unread]),
    ]


def _container_row(one: Container) -> tuple[str, ...]:
    clients = "" if one.clients_port is None else f"clients at port {one.clients_port}"
    return (one.node, f"container {one.container}", one.address or "no address", clients)


def _cluster_lines(cluster: ClusterFacts) -> list[str]:
    modes = {"kraft": "KRaft", "zookeeper": "ZooKeeper", None: "unknown"}
    voters = f"; voters {', '.join(map(str, cluster.voters))}" if cluster.voters else ""
    return [
        f"release     about Apache Kafka {cluster.release}"
        if cluster.release
        else "release     unknown",
        f"mode        {modes.get(cluster.mode, 'unknown')}",
        f"cluster id  {cluster.cluster_id or 'unknown'}",
        f"controller  {cluster.controller or 'none'}{voters}",
    ]


def _topic_lines(cluster: ClusterFacts) -> list[str]:
    rows = [
        (
            name,
            f"{topic.partitions} partitions, {topic.replication_factor} replicas",
            *(
                f"{key}={topic.settings[key]}"
                for key in ("min.insync.replicas", "cleanup.policy")
                if key in topic.settings
            ),
        )
        for name, topic in cluster.topics.items()
    ]
    return _table("internal topics", rows)


def _possible_rows(possible: Iterable[Possibility], needs: str = "needs ") -> list[tuple[str, ...]]:
    return [
        (one.name, "yes" if one.is_possible else f"no: {needs}{'; '.join(one.missing)}")
        for one in possible
    ]


def _table(title: str, rows: Sequence[tuple[str, ...]]) -> list[str]:
    """Return the rows under a title, in columns; nothing without rows."""
    if not rows:
        return []
    columns = max(map(len, rows))
    widths = [
        max((len(row[at]) for row in rows if at < len(row)), default=0) for at in range(columns)
    ]
    return [
        "",
        f"{title}:",
        *(
            "  " + "  ".join(cell.ljust(widths[at]) for at, cell in enumerate(row)).rstrip()
            for row in rows
        ),
    ]
