"""Topics that only the asking process uses: it creates, changes and deletes them during the run.

Each has other settings than the one before it, and they change while it exists.

About half of the deleted topics are created again under the same name. A group without members has
committed an offset for the former topic, and the process asks for it in the next rounds: a consumer
of the new topic that continued there would skip records (KAFKA-2000).
"""

import asyncio
import random
from typing import Final

from aiokafka.client import AIOKafkaClient
from aiokafka.errors import for_code
from aiokafka.protocol.admin import CreatePartitionsRequest

from workloads.client import aio_admin
from workloads.client.asking.group_offsets import GroupOffsets
from workloads.client.asking.own_topics import Administrator, append
from workloads.client.asking.requests import Place
from workloads.client.asking.setting_requests import SettingRequest
from workloads.client.asking.txn_requests import batch

SECONDS: Final = 2000
PARTITIONS_MAX: Final = 4
HOUR_MS: Final = 3_600_000
ALTER_P: Final = 0.2
"""How often the settings of a topic are changed."""
AT_ONCE_P: Final = 0.5
"""How often two settings are changed at once, instead of all."""
AGAIN_P: Final = 0.5
"""How often a deleted topic is created again under the same name."""
READ_P: Final = 0.3
"""How often the offset for the former topic is requested, once the new one exists."""


class Topics:
    """The topics of one process; ``ask`` changes one, and returns what happened as text."""

    def __init__(
        self, client: AIOKafkaClient, rng: random.Random, name: str, admin: Administrator
    ) -> None:
        self._client = client
        self._rng = rng
        self._name = name
        self._admin = admin
        self._count = 0
        self._partitions = 0
        """Of the topic that exists now; 0: none."""
        self._lasting: str | None = None
        self._offsets = GroupOffsets(client)
        self._reader = ""
        """The group that committed an offset for the former topic of the same name; empty: none."""
        self._commits = 0
        self._changes = 0
        """How often the settings of a topic were requested."""

    async def lasting(self, partitions: int) -> str:
        """Return a topic that is never deleted; create it first."""
        if self._lasting is None:
            name = f"{self._name}-lasting"
            await self._admin.create(name, partitions)
            self._lasting = name
        return self._lasting

    async def ask(self, place: Place, leader: int, brokers: list[int]) -> str:
        """Create a topic, write to it, change its settings, add a partition, or delete it."""
        name = f"{self._name}-{self._count}"
        if not self._partitions:
            kind, error = await self._admin.create(name, settings=self._settings())
            self._partitions = int(kind == "ok")
            if kind == "fail":
                self._next_name()
            said = f"create {name}: {error or 'NoError'}"
            return f"{said}, {await self._read(name)}" if kind == "ok" and self._reader else said
        if self._reader and self._rng.random() < READ_P:
            return await self._read(name)
        how = self._rng.random()
        if how < ALTER_P:
            return await self._alter(name, brokers)
        if how < 0.5:
            return await self._write(Place(name, self._rng.randrange(self._partitions)))
        if how < 0.75 and self._partitions < PARTITIONS_MAX:
            return await self._extend(name)
        return await self._delete(name)

    async def _alter(self, name: str, brokers: list[int]) -> str:
        """Change the settings of the topic, and then those of the one that is never deleted."""
        said = []
        for topic in (name, *([] if self._lasting is None else [self._lasting])):
            if self._rng.random() < AT_ONCE_P:
                said.append(await self._alter_at_once(topic, brokers))
                continue
            error = await aio_admin.alter_topic(self._admin.common, topic, self._settings())
            said.append(f"alter {topic}: {error or 'NoError'}")
        return ", ".join(said)

    async def _alter_at_once(self, topic: str, brokers: list[int]) -> str:
        """Change two settings of a topic at the same time through two brokers (KIP-339)."""
        self._changes += 2
        requests = [
            SettingRequest(topic, setting, str(HOUR_MS + self._changes))
            for setting in ("segment.ms", "file.delete.delay.ms")
        ]
        nodes = self._rng.choices(brokers, k=len(requests))
        answers = await asyncio.gather(*map(self._client.send, nodes, requests))
        codes = [answer.resources[0][0] for answer in answers]
        return f"set twice {topic}: {', '.join(for_code(code).__name__ for code in codes)}"

    def _settings(self) -> dict[str, str]:
        """Return settings that differ from the former ones; every second time there are none."""
        self._changes += 1
        return {} if self._changes % 2 else {"segment.ms": str(HOUR_MS + self._changes)}

    def _next_name(self) -> None:
        self._count += 1
        self._reader = ""

    async def _delete(self, name: str) -> str:
        """Delete the topic; sometimes commit an offset for it before, and use its name again."""
        group, again = f"{name}-reader", self._rng.random() < AGAIN_P
        self._partitions = 0
        self._next_name()
        said = f"{await self._commit(group, name)}, " if again else ""
        kind, error = await self._admin.delete(name)
        if again and kind == "ok":
            self._count -= 1
            self._reader = group
        return f"{said}delete {name}: {error or 'NoError'}"

    async def _commit(self, group: str, topic: str) -> str:
        self._commits += 1
        code = await self._offsets.commit(group, Place(topic, 0), self._commits)
        return f"commit {group} {self._commits}: {for_code(code).__name__}"

    async def _read(self, topic: str) -> str:
        """Ask for the offset that was committed for the former topic of this name."""
        offset, code = await self._offsets.fetch(self._reader, Place(topic, 0))
        return f"read {self._reader} {offset}: {for_code(code).__name__}"

    async def _write(self, place: Place) -> str:
        data = batch(-1, -1, -1, 2, transactional=False)
        [code] = await append(self._client, place, {place.partition: data})
        return f"write {place.topic}-{place.partition}: {for_code(code).__name__}"

    async def _extend(self, name: str) -> str:
        controller = self._client.cluster.controller
        if controller is None:
            return "no controller"
        wanted = self._partitions + 1
        request = CreatePartitionsRequest([(name, (wanted, None))], SECONDS, False)
        answer = await self._client.send(controller.nodeId, request)
        ((_, code, _),) = answer.topic_errors
        if not code:
            self._partitions = wanted
            self._client.force_metadata_update()
        return f"extend {name} to {wanted}: {for_code(code).__name__}"
