"""The contract: what a run's configuration promises.

It follows from acks, idempotence, elections, isolation and the way of subscribing: a duplicate is a
bug with ``enable.idempotence`` and expected without it. ``min.insync.replicas`` = 1 makes no
difference here: with clean elections, only a lost disk could then lose an acknowledged record.
:mod:`checkers.anomalies.legality` has the rules by which a contract permits findings.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from checkers import cluster_promises
from checkers.kernels.faults import SETTLED_NS
from model.cluster_facts import ClusterFacts
from model.plan import Plan

_ACKS = {"all": "all", "-1": "all", "1": "1", "0": "0"}
_ACKS_NAMES = ("producer.acks", "producer.request.required.acks")
_READS_COMMITTED = {"read_committed": True, "read_uncommitted": False}
_BEGINS_AT_END = {
    **dict.fromkeys(("earliest", "smallest", "beginning", "none", "error"), False),
    **dict.fromkeys(("latest", "largest", "end"), True),
}
"""The values of ``auto.offset.reset`` of Java's clients and of librdkafka."""

PATIENCE_S = 30
"""Seconds for which a standstill is tolerated beyond the timeouts that may cause it."""

MOVE = "reassign"
"""The fault that moves partitions to other brokers."""
HEARS_MAX_S = SETTLED_NS / 1e9
"""At most so many seconds after a fault, a former leader may not have heard of its successor. The
session timeout and the timeout of the controller's requests, each taken twice, may allow less."""

KNOWN = (
    "broker.controller.socket.timeout.ms",
    "broker.default.replication.factor",
    "broker.min.insync.replicas",
    "broker.transaction.version",
    "broker.unclean.leader.election.enable",
    "broker.zookeeper.session.timeout.ms",
    "consumer.auto.offset.reset",
    "consumer.isolation.level",
    "consumer.max.poll.interval.ms",
    "consumer.session.timeout.ms",
    "producer.acks",
    "producer.enable.idempotence",
    "producer.max.in.flight.requests.per.connection",
    "producer.request.required.acks",
    "producer.transaction.timeout.ms",
)
"""The settings that decide a contract. Another name is rejected: it would change nothing, and a
misspelt name would go unnoticed. ``transaction.version`` is Kafka's feature (KIP-890) and not a
broker setting here: the brokers of this project implement version 1, and are judged as if it were
2. For other clusters see :func:`checkers.cluster_promises.transaction_version`."""


STRICT: Mapping[str, str] = {
    "producer.acks": "all",
    "producer.enable.idempotence": "true",
    "broker.unclean.leader.election.enable": "false",
    "broker.transaction.version": "2",
}
"""The settings that promise most: under them nothing acknowledged may be lost or duplicated."""


class BadSetting(ValueError):
    """A setting that cannot be interpreted; the message says which one, and what would be valid."""


@dataclass(frozen=True)
class Contract:
    """The settings that decide what is illegal; the defaults are the strictest."""

    acks: str = "all"
    idempotent: bool = True
    in_flight: int = 5
    replication_factor: int = 3
    moves: bool = False
    """Whether partitions are moved to other brokers: meanwhile, each has more than one replica."""
    unclean_elections: bool = False
    late_ends: bool = False
    """Whether the end of a transaction may come late, and end the next one. The protocol itself
    allows that with ``transaction.version`` 1."""
    read_committed: bool = True
    subscribes: bool = False
    transaction_timeout_s: float = 60.0
    member_timeout_s: float = 345.0
    """How long a silent member, and then one that does not rejoin, may hold up a group."""
    delete_retention_ms: int = 86_400_000
    """How long a tombstone stays in the log at least."""
    begins_at_end: bool = False
    """Whether members begin at the end of a log without a committed offset."""
    hears_s: float = HEARS_MAX_S
    """How long after a fault a former leader may not have heard of its successor."""

    @classmethod
    def of(
        cls,
        plan: Plan | None,
        settings: Mapping[str, str] | None = None,
        cluster: ClusterFacts | None = None,
    ) -> Self:
        """Return the contract of a run, or of a bare history (``plan`` is ``None``).

        What the cluster reported about itself replaces the plan's broker settings
        (:mod:`checkers.cluster_promises`). The plan's ``expect`` replaces both, and ``settings``
        (names such as ``producer.acks``) replaces all of them. Raises :class:`BadSetting`.
        """
        values: dict[str, str] = {}
        if plan is not None:
            for part in ("broker", "producer", "consumer"):
                values |= {f"{part}.{name}": value for name, value in getattr(plan, part).items()}
            for name in ("replication_factor", "subscribe", "delete_retention_ms"):
                if name in plan.options:
                    values[f"options.{name}"] = str(plan.options[name]).lower()
        if cluster is not None:
            values = cluster_promises.replaced(values, cluster, plan.options if plan else {})
        expected = plan.expect if plan is not None else {}
        for name, value in {**expected, **(settings or {})}.items():
            if name.partition(".")[0] not in ("broker", "producer", "consumer"):
                raise BadSetting(
                    f"--set {name}: the name of a setting must be broker.KEY, producer.KEY "
                    "or consumer.KEY"
                )
            if name not in KNOWN:
                raise BadSetting(
                    f"{name} does not affect the verdict; only these settings do: "
                    f"{', '.join(KNOWN)}"
                )
            if name in _ACKS_NAMES:  # two names of one setting
                values = {each: values[each] for each in values if each not in _ACKS_NAMES}
            values[name] = value
        acks = _acks(values)
        return cls(
            acks=acks,
            idempotent=_flag(values, "producer.enable.idempotence", acks == "all")
            and acks == "all",
            in_flight=_number(values, "producer.max.in.flight.requests.per.connection", 5),
            replication_factor=_number(
                values,
                "options.replication_factor",
                _number(values, "broker.default.replication.factor", 3),
            ),
            moves=plan is not None and any(each.fault == MOVE for each in plan.schedule or ()),
            late_ends=_number(values, "broker.transaction.version", 2) < 2,
            unclean_elections=_flag(values, "broker.unclean.leader.election.enable", False),
            read_committed=_choice(
                values, "consumer.isolation.level", _READS_COMMITTED, "read_committed"
            ),
            subscribes=_flag(values, "options.subscribe", False),
            transaction_timeout_s=_number(values, "producer.transaction.timeout.ms", 60_000) / 1000,
            member_timeout_s=(
                _number(values, "consumer.session.timeout.ms", 45_000)
                + _number(values, "consumer.max.poll.interval.ms", 300_000)
            )
            / 1000,
            delete_retention_ms=_number(values, "options.delete_retention_ms", 86_400_000),
            begins_at_end=_choice(values, "consumer.auto.offset.reset", _BEGINS_AT_END, "earliest"),
            hears_s=min(
                HEARS_MAX_S,
                2
                * (
                    _number(values, "broker.zookeeper.session.timeout.ms", 18_000)
                    + _number(values, "broker.controller.socket.timeout.ms", 30_000)
                )
                / 1000,
            ),
        )

    @property
    def loses(self) -> bool:
        """Whether acknowledged records may be lost."""
        has_replicas = self.replication_factor > 1 or self.moves
        return self.acks == "0" or (self.acks == "1" and has_replicas)


def _acks(values: Mapping[str, str]) -> str:
    name = next((each for each in _ACKS_NAMES if each in values), _ACKS_NAMES[0])
    value = values.get(name, "all")
    if value not in _ACKS:
        raise BadSetting(f"--set {name}={value}: acks must be all, 1 or 0")
    return _ACKS[value]


def _choice(
    values: Mapping[str, str], name: str, meanings: Mapping[str, bool], default: str
) -> bool:
    value = values.get(name, default)
    if value not in meanings:
        raise BadSetting(f"--set {name}={value}: the value must be one of {', '.join(meanings)}")
    return meanings[value]


def _flag(values: Mapping[str, str], name: str, default: bool) -> bool:
    value = values.get(name, str(default)).lower()
    if value not in ("true", "false"):
        raise BadSetting(f"--set {name}={value}: the value must be true or false")
    return value == "true"


def _number(values: Mapping[str, str], name: str, default: int) -> int:
    value = values.get(name, str(default))
    if not value.isdecimal():
        raise BadSetting(f"--set {name}={value}: the value must be a whole number")
    return int(value)
