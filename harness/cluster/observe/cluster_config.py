"""Reads what a cluster itself reports: its release, features, and the settings that promise much.

The result is the content of ``cluster.json``. It uses Kafka's protocol only, and does not fail:
what a release cannot answer is listed in the result.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from broker_impl.wire.messages.metadata_request import MetadataRequest
from broker_impl.wire.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from harness.cluster.address import Address
from harness.cluster.observe import release
from harness.cluster.observe.kafka_metadata import KafkaView
from harness.cluster.observe.metadata_view import ViewUnavailable
from harness.cluster.observe.negotiation import Negotiator, Supported
from model import roles
from model.cluster_facts import BrokerFacts, ClusterFacts, TopicFacts
from model.roles import NodeId

_METADATA, _DESCRIBE_CONFIGS, _DESCRIBE_QUORUM = 3, 32, 55
_TOPIC, _BROKER = 2, 4
"""Types of resources in DescribeConfigs."""

BROKER_SETTINGS = (
    *("min.insync.replicas", "unclean.leader.election.enable", "default.replication.factor"),
    *("auto.create.topics.enable", "log.cleanup.policy", "log.retention.ms", "log.retention.bytes"),
    *("offsets.topic.replication.factor", "transaction.state.log.replication.factor"),
    *("transaction.state.log.min.isr", "transaction.max.timeout.ms"),
    *("transactional.id.expiration.ms", "producer.id.expiration.ms"),
    *("group.coordinator.rebalance.protocols", "replica.lag.time.max.ms"),
    *("broker.session.timeout.ms", "zookeeper.session.timeout.ms", "controller.socket.timeout.ms"),
)
TOPIC_SETTINGS = (
    *("min.insync.replicas", "unclean.leader.election.enable", "cleanup.policy"),
    *("retention.ms", "retention.bytes", "delete.retention.ms", "message.timestamp.type"),
)
_WEAKER_IF_GREATER = frozenset(
    {
        "unclean.leader.election.enable",  # "true" follows "false"
        "zookeeper.session.timeout.ms",
        "controller.socket.timeout.ms",
    }
)


async def read(
    brokers: Mapping[NodeId, Address] | Sequence[Address],
    topics: Sequence[str] = (),
    *,
    timeout_s: float = 5.0,
) -> ClusterFacts:
    """Return what the cluster reports; ``topics`` are those to read besides the internal ones.

    ``brokers``: addresses past all faults by node, or bootstrap addresses. If no broker answers,
    the facts are empty but for the reason.
    """
    negotiator = Negotiator(timeout_s)
    seeds = tuple(brokers.values() if isinstance(brokers, Mapping) else brokers)
    metadata = await _first_metadata(negotiator, seeds)
    if metadata is None:
        names = ", ".join(map(str, seeds))
        return ClusterFacts(unread=(f"no broker answers at {names}",))
    return await _Reader(negotiator, brokers, metadata, topics).facts()


async def _first_metadata(
    negotiator: Negotiator, seeds: Sequence[Address]
) -> MetadataResponse | None:
    for seed in seeds:
        answer = await negotiator.ask(seed, _METADATA, lambda _: MetadataRequest(topics=None))
        if answer is not None:
            found: MetadataResponse = answer
            return found
    return None


class _Reader:
    """Reads the facts of one cluster, and collects what could not be read."""

    def __init__(
        self,
        negotiator: Negotiator,
        brokers: Mapping[NodeId, Address] | Sequence[Address],
        metadata: MetadataResponse,
        topics: Sequence[str],
    ) -> None:
        self._negotiator = negotiator
        self._metadata = metadata
        self._brokers = brokers
        given = brokers if isinstance(brokers, Mapping) else {}
        self._at = {
            row.node_id: given.get(roles.broker(row.node_id), Address(row.host, row.port))
            for row in sorted(metadata.brokers, key=lambda row: row.node_id)
        }
        self._topics = [row for row in metadata.topics if row.name in topics or _is_internal(row)]
        self._unread = [
            f"topic {name}: it does not exist"
            for name in topics
            if name not in [row.name for row in metadata.topics if row.partitions]
        ]

    async def facts(self) -> ClusterFacts:
        supported = await self._supported()
        apis = _common([one.apis for one in supported.values()])
        settings = await self._broker_settings(supported)
        view = KafkaView(self._brokers, negotiator=self._negotiator)
        try:
            controller = await view.controller()
            voters = await view.voters()
        except ViewUnavailable as error:
            controller, voters = None, ()
            self._unread.append(f"controller: {error}")
        return ClusterFacts(
            release=release.guess(apis),
            mode=None if not apis else "kraft" if _DESCRIBE_QUORUM in apis else "zookeeper",
            cluster_id=self._metadata.cluster_id,
            brokers=tuple(
                BrokerFacts(id=row.node_id, host=row.host, port=row.port, rack=row.rack)
                for row in sorted(self._metadata.brokers, key=lambda row: row.node_id)
            ),
            controller=controller,
            voters=voters,
            apis={key: (listed.start, listed.stop - 1) for key, listed in sorted(apis.items())},
            features=_least_levels([one.features for one in supported.values()]),
            broker={name: _weakest(name, by.values()) for name, by in sorted(settings.items())},
            differing={name: by for name, by in settings.items() if len({*by.values()}) > 1},
            topics=await self._topic_facts(),
            unread=tuple(self._unread),
        )

    async def _supported(self) -> dict[int, Supported]:
        answers = await asyncio.gather(*map(self._negotiator.supported, self._at.values()))
        found = dict(zip(self._at, answers, strict=True))
        for number, supported in found.items():
            if supported is None:
                self._unread.append(f"broker {number}: it does not answer at {self._at[number]}")
        return {number: one for number, one in found.items() if one is not None}

    async def _broker_settings(
        self, supported: Mapping[int, Supported]
    ) -> dict[str, dict[int, str]]:
        """The values of each broker setting by ``broker.id``; a broker reports only its own."""
        read: dict[str, dict[int, str]] = {}
        for number in supported:
            resource = DescribeConfigsResource(_BROKER, str(number), [*BROKER_SETTINGS])
            answer = await self._configs(
                self._at[number], [resource], f"settings of broker {number}"
            )
            for values in answer.values():
                for name, value in values.items():
                    read.setdefault(name, {})[number] = value
        return read

    async def _topic_facts(self) -> dict[str, TopicFacts]:
        resources = [
            DescribeConfigsResource(_TOPIC, row.name or "", [*TOPIC_SETTINGS])
            for row in self._topics
        ]
        at = next(iter(self._at.values()), None)
        answer = (
            await self._configs(at, resources, "settings of topics") if at and resources else {}
        )
        return {
            row.name or "": TopicFacts(
                partitions=len(row.partitions),
                replication_factor=min(
                    (len(one.replica_nodes) for one in row.partitions), default=0
                ),
                settings=answer.get(row.name or "", {}),
            )
            for row in self._topics
        }

    async def _configs(
        self, at: Address, resources: list[DescribeConfigsResource], what: str
    ) -> dict[str, dict[str, str]]:
        """Values by resource and setting; the reason is collected where there are none."""
        supported = await self._negotiator.supported(at)
        if supported is not None and supported.newest(_DESCRIBE_CONFIGS) is None:
            self._unread.append(f"{what}: the release has no DescribeConfigs (KIP-133)")
            return {}
        request = DescribeConfigsRequest(resources)
        answer = await self._negotiator.ask(at, _DESCRIBE_CONFIGS, lambda _: request)
        if answer is None:
            self._unread.append(f"{what}: there is no answer from {at}")
            return {}
        for result in answer.results:
            if result.error_code:
                self._unread.append(f"{what}: {result.resource_name}: {_error(result)}")
        return {
            result.resource_name: {
                row.name: row.value for row in result.configs if row.value is not None
            }
            for result in answer.results
        }


def _is_internal(row: MetadataResponseTopic) -> bool:
    return row.is_internal or row.name in ("__consumer_offsets", "__transaction_state")


def _error(result: Any) -> str:
    known = [error.name for error in ErrorCode if error == result.error_code]
    return result.error_message or (known[0] if known else f"error {result.error_code}")


def _common(listed: Sequence[Mapping[int, range]]) -> dict[int, range]:
    """The versions of each API that all brokers list."""
    if not listed:
        return {}
    keys = set.intersection(*({*apis} for apis in listed))
    ranges = {
        key: range(max(one[key].start for one in listed), min(one[key].stop for one in listed))
        for key in keys
    }
    return {key: versions for key, versions in ranges.items() if versions}


def _least_levels(features: Sequence[Mapping[str, int]]) -> dict[str, int]:
    names = sorted({name for levels in features for name in levels})
    return {name: min(levels.get(name, 0) for levels in features) for name in names}


def _weakest(name: str, values: Iterable[str]) -> str:
    """The value that promises least where it is known which one does, otherwise the least."""
    choose = max if name in _WEAKER_IF_GREATER else min
    return choose(values, key=_order)


def _order(value: str) -> tuple[int, str]:
    return (int(value), "") if value.isdecimal() else (-1, value)
