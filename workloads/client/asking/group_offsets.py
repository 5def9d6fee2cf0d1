"""Commits, requests and deletes committed offsets of groups without members."""

from typing import Any

from aiokafka.client import AIOKafkaClient, ConnectionGroup, CoordinationType
from aiokafka.protocol.admin import DeleteGroupsRequest

from workloads.client.asking.group_requests import CommitRequest, Membership
from workloads.client.asking.offset_requests import AllOffsetsRequest, OffsetsRequest
from workloads.client.asking.requests import Place


class GroupOffsets:
    """The offsets of groups, each request sent once to the group's coordinator."""

    def __init__(self, client: AIOKafkaClient) -> None:
        self._client = client

    async def send(self, group: str, request: Any) -> Any:
        """Send a request to the coordinator of a group."""
        node = await self._client.coordinator_lookup(CoordinationType.GROUP, group)
        return await self._client.send(node, request, group=ConnectionGroup.COORDINATION)

    async def commit(self, group: str, place: Place, offset: int) -> int:
        """Commit as a tool that resets offsets does; return the error code."""
        request = CommitRequest(Membership(group, -1, "", None), place, offset)
        answer = await self.send(group, request)
        ((_, ((_, code),)),) = answer.topics
        return int(code)

    async def fetch(self, group: str, place: Place, *, stable: bool = True) -> tuple[int, int]:
        """Return the committed offset, -1 if there is none, and the error code."""
        answer = await self.send(group, OffsetsRequest(group, place, stable=stable))
        if answer.error_code:
            return -1, answer.error_code
        ((_, ((_, offset, *_, code, _),), _),) = answer.topics
        return offset, code

    async def fetch_all(self, group: str, *others: str, stable: bool = True) -> int:
        """Ask for the offsets of all partitions of a group, and of other ones in the same request.

        Returns the error code of the first one.
        """
        request = AllOffsetsRequest((group, *others), stable=stable)
        answer = await self.send(group, request)
        return int(answer.groups[0][2])

    async def delete(self, group: str) -> int:
        """Delete a group; return the error code."""
        answer = await self.send(group, DeleteGroupsRequest([group]))
        return int(answer.results[0][1])
