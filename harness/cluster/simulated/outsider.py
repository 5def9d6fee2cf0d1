"""A client that may not read: it fetches from the brokers all the time, and reports what it gets.

The brokers of a plan with ``outsider_ms`` have ACLs, and a listener on which clients authenticate.
Operators and brokers are super users; so are the clients of workloads, unless the option
``security`` makes them authenticate. The outsider has no right, except that an operator gives it
the right to read all topics and takes it away again, several times in a run. It fetches as a
consumer with and without a fetch session, and as a debugging tool, which reads to the end of the
log.

What it gets is a leak only if the broker itself said before the request and after the response that
the outsider has no right, and was not started again in between. A broker may learn late that a
right was taken away, and until then it may serve the outsider.
"""

import asyncio
import random
from collections.abc import Callable, Mapping
from typing import Any, Final

from broker_impl.config import Login
from broker_impl.errors import WireError
from broker_impl.node.peer_security import PeerSecurity
from broker_impl.node.peers import PeerError, Peers
from broker_impl.security.acls import Operation, Pattern, Permission, ResourceType
from broker_impl.wire.batch import HEADER_BYTES, parse_header
from broker_impl.wire.messages.create_acls_request import AclCreation, CreateAclsRequest
from broker_impl.wire.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from broker_impl.wire.messages.describe_acls_request import DescribeAclsRequest
from broker_impl.wire.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from broker_impl.wire.messages.metadata_request import MetadataRequest
from harness.cluster.address import Address
from harness.cluster.observe.invariant_monitor import Watcher
from harness.cluster.simulated import node_settings
from harness.cluster.simulated.node_settings import OUTSIDER
from harness.simulation.host import Host
from harness.simulation.process import Process
from model.layout import Layout
from model.plan import Plan

PRINCIPAL: Final = f"User:{OUTSIDER}"
CHANGE_P: Final = 0.2
"""The probability that the outsider's right is changed before a fetch."""
TIMEOUT_S: Final = 2.0
BYTES_MAX: Final = 4096
"""The bytes that the outsider fetches of a partition: its first batch is enough."""
_CONSUMER, _TOOL = -1, -2
_CREATE_SESSION, _NO_SESSION = 0, -1
_METADATA_V, _FETCH_V, _ACLS_V = 9, 11, 2

Leaked = Callable[[int, str, int, str], None]
"""Called with the broker, the partition, the offset of the first batch, and the argument."""


class Outsider:
    """The outsider, and the operator that changes its right."""

    def __init__(
        self,
        brokers: Mapping[int, Address],
        guarded: Mapping[int, Address],
        rng: random.Random,
        pause_s: float,
        leaked: Leaked,
        life_of: Callable[[int], int],
    ) -> None:
        """``brokers``: where the operator reaches the brokers; ``guarded``: where the outsider.

        ``life_of`` returns how many times a broker has been started.
        """
        self._numbers = sorted(brokers)
        self._rng = rng
        self._pause_s = pause_s
        self._leaked = leaked
        self._life_of = life_of
        self._operator = Peers("operator", {})
        login = Login(OUTSIDER, OUTSIDER, {})
        self._reader = Peers(OUTSIDER, {}, PeerSecurity(None, "PLAIN", login, lambda: ""))
        self._operator.update(brokers)
        self._reader.update(guarded)
        self._sessions: dict[int, tuple[int, int]] = {}
        """The fetch session with each broker: its id, and the epoch of the next request."""
        self._has_right = False
        """What the operator asked for last."""
        self._unanswered: set[type] = set()
        """The kinds of changes that had no response and may take effect at any time."""
        self.answered = 0
        """Fetches that a broker answered."""

    async def run(self) -> None:
        """Fetch until the process ends."""
        while True:
            await asyncio.sleep(self._pause_s * self._rng.uniform(0.5, 1.5))
            await self.visit(self._rng.choice(self._numbers))

    async def visit(self, broker: int) -> None:
        """Perhaps change the right, then fetch once from this broker."""
        if self._rng.random() < CHANGE_P:
            await self._change()
        life, was_denied = self._life_of(broker), await self._is_denied(broker)
        fetch = self._rng.choice((self._fetch_in_session, self._fetch_all, self._fetch_as_tool))
        found = await fetch(broker)
        is_leak = found and was_denied and await self._is_denied(broker)
        if is_leak and self._is_certain and self._life_of(broker) == life:
            for key, offset in found:
                self._leaked(
                    broker,
                    key,
                    offset,
                    f"broker {broker} returned records of {key} from offset {offset} to {PRINCIPAL}"
                    ", which has no right by the broker's own answers before and after",
                )

    @property
    def _is_certain(self) -> bool:
        """Whether no right can have come and gone between the two answers of a broker."""
        return len(self._unanswered) < 2

    # The operator.

    async def _change(self) -> None:
        """Give the right, or take it away."""
        request = revocation() if self._has_right else grant()
        self._has_right = not self._has_right
        broker = self._rng.choice(self._numbers)
        if await _ask(self._operator, broker, request, _ACLS_V) is None:
            self._unanswered.add(type(request))

    async def _is_denied(self, broker: int) -> bool:
        """Whether the broker says that the outsider has no right; False if it says nothing."""
        answer = await _ask(self._operator, broker, description(), _ACLS_V)
        return answer is not None and not answer.error_code and not answer.resources

    async def _topics(self, broker: int) -> list[FetchTopic]:
        """The partitions that the broker leads, each to be read from its beginning."""
        answer = await _ask(self._operator, broker, MetadataRequest(topics=None), _METADATA_V)
        return [
            FetchTopic(
                topic=topic.name,
                partitions=[
                    FetchPartition(partition=each.partition_index, partition_max_bytes=BYTES_MAX)
                    for each in topic.partitions
                    if each.leader_id == broker
                ],
            )
            for topic in (() if answer is None else answer.topics)
        ]

    # The outsider.

    async def _fetch_all(self, broker: int) -> list[tuple[str, int]]:
        request = FetchRequest(replica_id=_CONSUMER, topics=await self._topics(broker))
        return _found(await self._fetch(broker, request))

    async def _fetch_as_tool(self, broker: int) -> list[tuple[str, int]]:
        request = FetchRequest(replica_id=_TOOL, topics=await self._topics(broker))
        return _found(await self._fetch(broker, request))

    async def _fetch_in_session(self, broker: int) -> list[tuple[str, int]]:
        """Go on with the fetch session, if there is one, and ask for one otherwise."""
        session = self._sessions.pop(broker, None)
        request = FetchRequest(replica_id=_CONSUMER)
        if session is None:
            request.session_epoch = _CREATE_SESSION
            request.topics = await self._topics(broker)
        else:
            request.session_id, request.session_epoch = session
        answer = await self._fetch(broker, request)
        if answer is not None and not answer.error_code and answer.session_id:
            self._sessions[broker] = answer.session_id, request.session_epoch + 1
        return _found(answer)

    async def _fetch(self, broker: int, request: FetchRequest) -> Any | None:
        answer = await _ask(self._reader, broker, request, _FETCH_V)
        self.answered += answer is not None
        return answer


def begin(host: Host, plan: Plan, layout: Layout, watcher: Watcher) -> list[Process]:
    """Start the outsider on this host, if the plan has one."""
    pause_s = node_settings.outsider_s(plan)
    if not pause_s:
        return []
    rng = random.Random(f"{plan.seed}:outsider")
    addresses, life_of = node_settings.outsider_addresses(layout, plan), watcher.snapshots.life_of
    outsider = Outsider(*addresses, rng, pause_s, watcher.leaked, life_of)
    return [host.spawn(outsider.run, OUTSIDER)]


def grant() -> CreateAclsRequest:
    """The request that lets the outsider read every topic."""
    return CreateAclsRequest(
        creations=[
            AclCreation(
                resource_type=ResourceType.TOPIC,
                resource_name="*",
                resource_pattern_type=Pattern.LITERAL,
                principal=PRINCIPAL,
                host="*",
                operation=Operation.READ,
                permission_type=Permission.ALLOW,
            )
        ]
    )


def revocation() -> DeleteAclsRequest:
    """The request that takes all rights of the outsider away."""
    return DeleteAclsRequest(
        filters=[
            DeleteAclsFilter(
                resource_type_filter=ResourceType.ANY,
                resource_name_filter=None,
                pattern_type_filter=Pattern.ANY,
                principal_filter=PRINCIPAL,
                host_filter=None,
                operation=Operation.ANY,
                permission_type=Permission.ANY,
            )
        ]
    )


def description() -> DescribeAclsRequest:
    """The request that asks for all rights of the outsider."""
    return DescribeAclsRequest(
        resource_type_filter=ResourceType.ANY,
        resource_name_filter=None,
        pattern_type_filter=Pattern.ANY,
        principal_filter=PRINCIPAL,
        host_filter=None,
        operation=Operation.ANY,
        permission_type=Permission.ANY,
    )


async def _ask(peers: Peers, broker: int, request: Any, version: int) -> Any | None:
    """Return the response, or None if there is none."""
    try:
        return await peers.request(broker, request, version, timeout_s=TIMEOUT_S)
    except PeerError:
        return None


def _found(answer: Any | None) -> list[tuple[str, int]]:
    """The partitions of which a response to a fetch has records, each with its first offset."""
    if answer is None:
        return []
    found = []
    for topic in answer.responses:
        for row in topic.partitions:
            if row.records is not None and len(row.records) >= HEADER_BYTES:
                try:
                    offset = parse_header(row.records).base_offset
                except WireError:
                    offset = -1  # whatever it is, the outsider must not have it
                found.append((f"{topic.topic}-{row.partition_index}", offset))
    return found
