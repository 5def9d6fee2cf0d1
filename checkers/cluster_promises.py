"""Which settings of a contract follow from what a cluster reported about itself."""

from collections.abc import Mapping
from typing import Any

from model.cluster_facts import ClusterFacts

CLIENT_TRANSACTION_VERSIONS: Mapping[str, int] = {"raw": 2}
"""The version of the transaction protocol that a client implements, by the option ``client``.
librdkafka and aiokafka implement version 1 only, which has one epoch for all transactions."""

_ZOOKEEPER_SETTINGS = ("zookeeper.session.timeout.ms", "controller.socket.timeout.ms")
"""What limits the time for which a former leader does not know its successor, with ZooKeeper."""
_FLAGS = ("unclean.leader.election.enable",)
_NUMBERS = ("default.replication.factor", "min.insync.replicas", *_ZOOKEEPER_SETTINGS)


def replaced(
    values: Mapping[str, str], facts: ClusterFacts, options: Mapping[str, Any]
) -> dict[str, str]:
    """Return the settings of a contract, with the cluster's facts in place of the plan's.

    ``values`` has the plan's, by names such as ``broker.min.insync.replicas``; ``options`` are the
    workload's. What the cluster did not report, or reported in a form that is not understood,
    keeps the plan's value.
    """
    result = dict(values)
    for name, value in facts.broker.items():
        if name in _FLAGS and value.lower() in ("true", "false"):
            result[f"broker.{name}"] = value.lower()
        elif name in _NUMBERS and value.isdecimal():
            result[f"broker.{name}"] = value
    if facts.mode == "kraft":
        for name in _ZOOKEEPER_SETTINGS:  # without meaning there: the greatest time holds
            result.pop(f"broker.{name}", None)
    if _has_unclean_topic(facts):
        result["broker.unclean.leader.election.enable"] = "true"
    if facts.apis and options.get("doubt_ends") is False:
        result["broker.transaction.version"] = str(
            transaction_version(facts, str(options.get("client")))
        )
    return result


def transaction_version(facts: ClusterFacts, client: str) -> int:
    """The version of the transaction protocol between a client and the cluster.

    It is the lower of both sides' (KIP-890). With version 1, all transactions of a producer have
    one epoch, also on a cluster whose finalized ``transaction.version`` is 2, and an EndTxn that
    arrives late may end the producer's next transaction (KAFKA-17754). That is possible only if the
    producer goes on after an EndTxn without an answer. Its successor has another epoch, which
    fences the late request. So the version matters only to a workload with ``doubt_ends = false``;
    for all others a late end is illegal with either version.
    """
    return min(
        facts.features.get("transaction.version", 1), CLIENT_TRANSACTION_VERSIONS.get(client, 1)
    )


def _has_unclean_topic(facts: ClusterFacts) -> bool:
    return any(
        topic.settings.get("unclean.leader.election.enable", "").lower() == "true"
        for topic in facts.topics.values()
    )
