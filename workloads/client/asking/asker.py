"""A process that only asks: each of its operations is a question, and a refusal is an answer.

It uses the connections of aiokafka's client, whichever client the other processes use. Its
questions change no record of the workload, so an operation without an answer ends in ``fail``.
"""

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from aiokafka import TopicPartition
from aiokafka.client import AIOKafkaClient
from aiokafka.errors import KafkaError, LeaderNotAvailableError

from model import racks
from model.op import Op
from workloads.client import aio_offsets
from workloads.client.aio_closing import stop_client
from workloads.client.aio_connection import connection_arguments
from workloads.client.aio_errors import its_assertions, name_of
from workloads.client.asking.deleted_groups import DeletedGroups
from workloads.client.asking.deleted_topics import DeletedTopics
from workloads.client.asking.followings import Followings
from workloads.client.asking.groups import Groups
from workloads.client.asking.log_directories import LogDirectories
from workloads.client.asking.memberships import Memberships
from workloads.client.asking.offsets import Positions
from workloads.client.asking.own_topics import Administrator
from workloads.client.asking.requests import Place
from workloads.client.asking.retention import Retention
from workloads.client.asking.stable_offsets import StableOffsets
from workloads.client.asking.topics import Topics
from workloads.client.asking.transactions import PARTITIONS, Transactions
from workloads.client.common import Settings, completed, split

ANSWER_S = 2.0
"""How long to wait for the answer to a question."""
STORIES = frozenset(
    {
        *("group", "deleted-group", "offsets", "transaction"),
        *("topic", "deleted-topic", "retention", "membership"),
    }
)
STORY_S = 8.0
"""The same for a question that consists of several requests."""

Question = Callable[[Place, int, list[int]], Awaitable[str]]
"""Asks about a partition, with its leader and all known brokers; returns the answer as text."""


class Asker:
    """The process; ``rng`` decides the details of its questions."""

    def __init__(self, settings: Settings, rng: random.Random, replicas: int) -> None:
        """``replicas``: the number of replicas of the topics that it creates."""
        common = {
            "bootstrap_servers": settings.bootstrap,
            "client_id": settings.name,
            **connection_arguments(settings.properties),
        }
        self._client = AIOKafkaClient(
            request_timeout_ms=int(ANSWER_S * 1000),
            retry_backoff_ms=100,
            metadata_max_age_ms=2000,
            **common,
        )
        self._is_open = False
        self.alive = True
        rack = settings.consumer.get(racks.CLIENT_SETTING, "")
        positions = Positions(self._client.send, rng, rack)
        name = f"{settings.prefix}asked-{settings.process}"
        admin = Administrator(common, replicas)
        topics = Topics(self._client, rng, name, admin)
        directories = LogDirectories(self._client, rng)

        def lasting() -> Awaitable[str]:
            return topics.lasting(PARTITIONS)

        self._of_partitions: Mapping[str, Question] = {
            "list-offsets": positions.list_offsets,
            "epoch-end": positions.epoch_end,
            "read": positions.read,
            "follow": Followings(self._client.send, rng, self._led).ask,
            "group": Groups(self._client, rng, name).ask,
            "deleted-group": DeletedGroups(self._client, rng, f"{name}-deleted").ask,
            "offsets": StableOffsets(self._client, rng, f"{name}-offsets").ask,
            "transaction": Transactions(self._client, rng, name, lasting).ask,
            "topic": topics.ask,
            "deleted-topic": DeletedTopics(self._client, rng, f"{name}-gone", admin).ask,
            "retention": Retention(self._client, rng, f"{name}-kept", admin, directories.ask).ask,
            "log-directory": directories.ask,
            "membership": Memberships(self._client, rng, f"{name}-member").ask,
        }

    async def open(self) -> None:
        """Do nothing: the first question connects."""

    async def invoke(self, op: Op) -> Op:
        """Ask the question of an operation."""
        ((_, name, *asked),) = op.value
        question = asked[0] if asked else op.f
        try:
            async with asyncio.timeout(STORY_S if question in STORIES else ANSWER_S):
                with its_assertions():
                    if not asked:
                        return completed(op, "ok", [[op.f, name, await self._ends(name)]])
                    answer = await self._ask(name, question)
        except (KafkaError, TimeoutError, OSError) as error:
            self._client.force_metadata_update()
            return completed(op, "fail", op.value, name_of(error))
        return completed(op, "ok", [["ask", name, question, answer]])

    async def _connect(self) -> None:
        if not self._is_open:
            await self._client.bootstrap()
            self._is_open = True

    def _led(self, topic: str, broker: int) -> list[Place]:
        """Return the partitions of a topic that a broker leads, as far as is known."""
        metadata = self._client.cluster
        numbers = sorted(metadata.partitions_for_topic(topic) or ())
        places = [Place(topic, number) for number in numbers]
        return [
            place
            for place in places
            if metadata.leader_for_partition(TopicPartition(*place)) == broker
        ]

    async def _ends(self, name: str) -> dict[str, int]:
        """Return log start, last stable offset and high watermark, requested in this order."""
        await self._connect()
        partition = TopicPartition(*split(name))
        return {
            place: await aio_offsets.ask(self._client, partition, place)
            for place in aio_offsets.PLACES
        }

    async def _ask(self, name: str, question: str) -> str:
        await self._connect()
        place = Place(*split(name))
        await self._client._wait_on_metadata(place.topic)
        leader = self._client.cluster.leader_for_partition(TopicPartition(*place))
        if leader is None or leader < 0:
            self._client.force_metadata_update()
            raise LeaderNotAvailableError(name)
        brokers = sorted(broker.nodeId for broker in self._client.cluster.brokers())
        answer = await self._of_partitions[question](place, leader, brokers)
        if "NotLeader" in answer or "NotController" in answer:
            self._client.force_metadata_update()
        return answer

    async def close(self) -> None:
        """Close all connections in limited time."""
        self.alive = False
        closing: Any = self._client.close
        await stop_client(closing, closing)
