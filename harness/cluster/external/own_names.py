"""The names of a run in a user's cluster: a view of its own topics only, and their removal."""

import asyncio
import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import msgspec

from broker_impl.errors import ErrorCode
from broker_impl.wire.messages.delete_groups_request import DeleteGroupsRequest
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.list_groups_request import ListGroupsRequest
from broker_impl.wire.messages.metadata_request import MetadataRequest
from harness.cluster.address import Address
from harness.cluster.observe.metadata_view import MetadataView, Registration
from harness.cluster.observe.negotiation import Negotiator
from harness.cluster.polling import until
from model.capabilities.control_plane import Partition
from model.roles import NodeId

INTERNAL = ("__consumer_offsets", "__transaction_state")
"""The topics of coordinators, which all users of a cluster share."""
REMOVED_S = 30.0
"""How long to try to remove topics and groups; a group is removed once its members are gone."""
_BETWEEN_S = 0.5
_METADATA, _LIST_GROUPS, _DELETE_TOPICS, _DELETE_GROUPS = 3, 16, 20, 42
_DELETE_BY_NAME = 5
"""The last version of DeleteTopics that has names only."""
_TOPICS_TIMEOUT_MS = 5000


def is_internal(key: str) -> bool:
    """Return whether a partition belongs to the topic of coordinators."""
    return key.rpartition("-")[0] in INTERNAL


class OwnView:
    """A view in which the run's topics have their names without prefix, and others are missing.

    The internal topics remain: a run depends on the coordinators.
    """

    def __init__(self, view: MetadataView, prefix: str) -> None:
        self._view = view
        self._prefix = prefix

    async def close(self) -> None:
        await self._view.close()

    async def controller(self) -> NodeId | None:
        return await self._view.controller()

    async def live(self) -> tuple[NodeId, ...]:
        return await self._view.live()

    async def registration(self, broker: NodeId) -> Registration | None:
        return await self._view.registration(broker)

    async def partition(self, key: str) -> Partition | None:
        """One partition, own or internal, by its name in the history."""
        found = await self._view.partition(self.on_brokers(key))
        return None if found is None else dataclasses.replace(found, key=key)

    async def partitions(self) -> tuple[Partition, ...]:
        """The partitions of the run's topics and of the internal ones."""
        found = await self._view.partitions()
        own = [
            dataclasses.replace(each, key=each.key.removeprefix(self._prefix))
            for each in found
            if each.key.startswith(self._prefix)
        ]
        return (*own, *(each for each in found if is_internal(each.key)))

    def on_brokers(self, key: str) -> str:
        """Return the name of a partition on the brokers."""
        return key if is_internal(key) else self._prefix + key


class Removal(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed from a cluster, and a sentence for what could not be."""

    topics: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    left: tuple[str, ...] = ()

    @property
    def is_any(self) -> bool:
        return bool(self.topics or self.groups)

    @property
    def described(self) -> str:
        """How many topics and groups were removed."""
        return f"{len(self.topics)} topics and {len(self.groups)} groups from the cluster"


async def remove_names(
    observed: Sequence[Address], prefix: str, timeout_s: float = REMOVED_S
) -> Removal:
    """Remove all topics and groups whose names begin with the prefix, which must not be empty."""
    assert prefix, "an empty prefix would remove everything"
    remover = _Remover(observed, prefix)
    try:
        async with asyncio.timeout(timeout_s):
            await until(remover.is_done, _BETWEEN_S)
    except TimeoutError:
        return remover.removal(f"topics and groups {prefix}*: {remover.why}")
    return remover.removal()


class _Remover:
    def __init__(self, observed: Sequence[Address], prefix: str) -> None:
        self._observed = observed
        self._prefix = prefix
        self._negotiator = Negotiator(5.0)
        self._topics: dict[str, None] = {}
        self._groups: dict[str, None] = {}
        self.why = "no broker answers"

    def removal(self, *left: str) -> Removal:
        return Removal(topics=tuple(self._topics), groups=tuple(self._groups), left=left)

    async def is_done(self) -> bool:
        """Request the removal of what is there; return whether nothing was there any more."""
        metadata = await self._metadata()
        if metadata is None:
            self.why = "no broker answers"
            return False
        brokers = {row.node_id: Address(row.host, row.port) for row in metadata.brokers}
        topics = self._own(row.name or "" for row in metadata.topics)
        groups = [await self._remove_groups(at) for at in brokers.values()]
        if topics:
            at = brokers.get(metadata.controller_id) or next(iter(brokers.values()))
            await self._remove_topics(at, topics)
        return not topics and not any(groups)

    def _own(self, names: Iterable[str]) -> list[str]:
        return sorted(name for name in names if name.startswith(self._prefix))

    async def _metadata(self) -> Any | None:
        for address in self._observed:
            answer = await self._negotiator.ask(
                address, _METADATA, lambda _: MetadataRequest(topics=None)
            )
            if answer is not None:
                return answer
        return None

    async def _remove_topics(self, at: Address, topics: list[str]) -> None:
        request = DeleteTopicsRequest(topic_names=topics, timeout_ms=_TOPICS_TIMEOUT_MS)
        answer = await self._negotiator.ask(
            at, _DELETE_TOPICS, lambda _: request, at_most=_DELETE_BY_NAME
        )
        if answer is None:
            self.why = f"{at} does not answer to DeleteTopics"
            return
        self._note(self._topics, {row.name or "": row.error_code for row in answer.responses})

    async def _remove_groups(self, at: Address) -> bool:
        """Request the removal of the groups that a broker coordinates; return if there are any."""
        listed = await self._negotiator.ask(at, _LIST_GROUPS, lambda _: ListGroupsRequest())
        groups = self._own(row.group_id for row in listed.groups) if listed is not None else []
        if not groups:
            return False
        request = DeleteGroupsRequest(groups_names=groups)
        answer = await self._negotiator.ask(at, _DELETE_GROUPS, lambda _: request)
        if answer is None:
            supported = await self._negotiator.supported(at)
            if supported is not None and _DELETE_GROUPS not in supported.apis:
                return False  # before Kafka 1.1 groups expire with their offsets (KIP-229)
            self.why = f"{at} does not answer to DeleteGroups"
            return True
        self._note(self._groups, {row.group_id: row.error_code for row in answer.results})
        return True

    def _note(self, removed: dict[str, None], errors: Mapping[str, int]) -> None:
        for name, code in errors.items():
            if code == ErrorCode.NONE:
                removed[name] = None
            else:
                known = [error.name for error in ErrorCode if error == code]
                self.why = f"{name}: {known[0] if known else f'error {code}'}"
