"""Consumer groups by aiokafka: members that come and go, and outsiders that only commit.

**A commit is one request.** aiokafka's own commit continues until it has a final response, and
reports only the last attempt: a rejection says nothing about the attempts before it, and a commit
that is sent again after a rebalance has the new generation. So this module sends a commit once, and
only from a member whose assignment is current; the response alone decides whether it is certain.

**A crash sends nothing.** A process that ends without ``leave`` closes its connections without
notifying the coordinator. aiokafka has no such operation, so its tasks are cancelled one by one.

**Errors of OffsetFetch are checked here.** Since version 2 the response to OffsetFetch has an error
for the whole group, which aiokafka ignores: it takes the response of a coordinator that is still
loading, or of a broker that is not the coordinator, to mean that nothing is committed, and starts
from the beginning (``docs/findings``, 13).

**OFFSET_OUT_OF_RANGE is believed only where it is true.** A former leader may return it for offsets
that were committed since; ``workloads.client.aio_range`` distinguishes the two cases.

**A freeze delays what is sent to the coordinator.** Some tasks of an event loop cannot be stopped
while others run, but their requests can wait until the freeze is over.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import asynccontextmanager
from typing import Any

from aiokafka import TopicPartition
from aiokafka.abc import ConsumerRebalanceListener
from aiokafka.consumer.group_coordinator import GroupCoordinator
from aiokafka.coordinator.assignors.range import RangePartitionAssignor
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor
from aiokafka.errors import (
    GroupCoordinatorNotAvailableError,
    KafkaError,
    NotCoordinatorForGroupError,
    for_code,
)
from aiokafka.protocol.commit import OffsetFetchRequest
from aiokafka.structs import OffsetAndMetadata

from model.op import MicroOp, Op
from workloads.client import aio_errors, aio_offset_delete, aio_range, payload
from workloads.client.aio import AioClient
from workloads.client.aio_closing import end_task, stop_client
from workloads.client.aio_errors import its_assertions, name_of
from workloads.client.aio_offset_delete import OffsetDeleteRequest
from workloads.client.aio_reader import Reader
from workloads.client.aio_settings import member_arguments
from workloads.client.common import (
    POLL_RECORDS_MAX,
    POLL_TIMEOUT_S,
    QUERY_TIMEOUT_S,
    Place,
    Settings,
    as_committed,
    completed,
    split,
    to_commit,
)
from workloads.client.membership import Feed, GroupClient, Subscriber
from workloads.client.outcome import Outcome

ASSIGNORS: Mapping[str, Any] = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
}
"""The assignors by their names in the protocol."""

LEAVE_TIMEOUT_S = 5.0
"""How long a member may take to leave its group."""
REFUSED_S = 1.0
"""How long a poll that has failed lasts, because a process ends with it and the next one begins.

Otherwise the processes of a group that is full (``group.max.size``) ask to join it without a pause.
"""


class GroupAioClient(GroupClient, AioClient):
    """A process that uses aiokafka with groups."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._member_arguments = {**self._common, **member_arguments(settings.consumer)}
        self._member: Member | None = None
        self._outsiders: dict[str, Grouped] = {}

    async def close(self) -> None:
        """End like a crash, without notifying the coordinator."""
        used = [*self._outsiders.values(), *([self._member] if self._member else [])]
        self._outsiders, self._member = {}, None
        await asyncio.gather(super().close(), *(each.close() for each in used))

    async def _subscribe(self, op: Op) -> Op:
        ((_, group, topics, how),) = op.value
        if self._member is None:
            self._member = Member(self._member_arguments, group, how)
        assert self._member.group == group, "a process is a member of only one group"
        error = await self._member.subscribe(topics)
        return completed(op, "ok" if error is None else "fail", op.value, error)

    async def _commit(self, op: Op) -> Op:
        """Commit offsets; a freeze before the commit ends right before the request is sent."""
        *freeze, (_, group, offsets, mode) = op.value
        ms = freeze[0][2] if freeze else 0
        committer = self._of(group)
        error = await committer.start()
        if error is not None:
            return completed(op, "fail", op.value, error)
        async with self._frozen(ms):
            ask = committer.delete if mode == "delete" else committer.commit
            kind, error = await ask(offsets)
        return completed(op, kind, op.value, error)

    async def _leave(self, op: Op) -> Op:
        assert self._member is not None, "only a member can leave"
        self._alive = False
        error = await self._member.leave()
        return completed(op, "ok" if error is None else "info", op.value, error)

    def _joined(self) -> Subscriber | None:
        return self._member

    def _of(self, group: str) -> "Grouped":
        if self._member is not None and self._member.group == group:
            return self._member
        if group not in self._outsiders:
            self._outsiders[group] = Grouped({**self._member_arguments, "group_id": group}, group)
        return self._outsiders[group]

    @asynccontextmanager
    async def _frozen(self, ms: int) -> AsyncIterator[None]:
        """Send nothing to the coordinator for this time; then the body's requests go first."""
        if not ms or self._member is None:
            await asyncio.sleep(ms / 1000)
            yield
            return
        thawed = asyncio.Event()
        self._member.hold_back(thawed)
        try:
            await asyncio.sleep(ms / 1000)
            self._member.let_through()
            yield
        finally:
            self._member.let_through()
            thawed.set()


class Grouped(Reader):
    """A consumer that commits to a group without being one of its members."""

    def __init__(self, arguments: Mapping[str, Any], group: str) -> None:
        super().__init__(arguments)
        self.group = group
        self._send: Callable[[Any], Awaitable[Any]] | None = None
        """aiokafka's own method that sends a request to the coordinator."""

    async def start(self) -> str | None:
        """Connect to the cluster; return the error if it was not found in time."""
        return await self._start()

    async def _start(self) -> str | None:
        error = await super()._start()
        if error is None and self._send is None:
            self._send = self._coordinator._send_req
            self._coordinator._send_req = self._heard
        return error

    async def _heard(self, request: Any) -> Any:
        """Return the response to a request; raise an error that rejects it for the whole group."""
        assert self._send is not None, "the member has started"
        answer = await self._send(request)
        if isinstance(request, OffsetFetchRequest | OffsetDeleteRequest) and answer.error_code:
            refused = for_code(answer.error_code)
            if refused in (NotCoordinatorForGroupError, GroupCoordinatorNotAvailableError):
                self._coordinator.coordinator_dead()
            raise refused(self.group)
        return answer

    async def commit(self, offsets: Mapping[str, Place]) -> tuple[Outcome, str | None]:
        """Commit with one request; return the outcome and the name of the error."""
        if (why := await self._find_coordinator()) is not None:
            return "fail", why
        async with self._coordinator._commit_lock:
            if (why := self._may_not_commit(offsets)) is not None:
                return "fail", why
            return await self._commit_now(offsets)

    async def delete(self, keys: Iterable[str]) -> tuple[Outcome, str | None]:
        """Delete committed offsets of these partitions with one request; like :meth:`commit`."""
        if (why := await self._find_coordinator()) is not None:
            return "fail", why
        places = [TopicPartition(*split(key)) for key in keys]
        try:
            with its_assertions():
                await aio_offset_delete.delete(self._coordinator._send_req, self.group, places)
        except KafkaError as error:
            return aio_errors.of_deletion(error), name_of(error)
        return "ok", None

    async def _find_coordinator(self) -> str | None:
        """Find the coordinator; return the error if it was not found."""
        try:
            async with asyncio.timeout(QUERY_TIMEOUT_S):
                await self._coordinator.ensure_coordinator_known()
        except (KafkaError, TimeoutError) as error:
            return name_of(error)
        return None

    async def committed(self, keys: list[str]) -> dict[str, Place | None]:
        """Return the committed offset of each partition, or ``None``, from the coordinator."""
        async with asyncio.timeout(QUERY_TIMEOUT_S):
            if (error := await self._start()) is not None:
                raise KafkaError(error)
            places = {key: TopicPartition(*split(key)) for key in keys}
            found = await self._coordinator.fetch_committed_offsets(list(places.values()))
        return {
            key: as_committed(*found[place]) if place in found else None
            for key, place in places.items()
        }

    async def close(self) -> None:
        """Close without notifying the coordinator."""
        if self._consumer._coordinator is not None:
            coordinator = self._coordinator
            for task in (
                coordinator._coordination_task,
                coordinator._heartbeat_task,
                coordinator._commit_refresh_task,
            ):
                if task is not None:
                    await end_task(task)
            if not coordinator._closing.done():
                coordinator._closing.set_result(None)  # so consumer.stop() finds it stopped
        await super().close()
        # A consumer whose leave has failed half-way counts as stopped, so its connections are
        # closed here.
        await stop_client(self._consumer._client.close, self._consumer._client.close)

    @property
    def _coordinator(self) -> GroupCoordinator:
        coordinator = self._consumer._coordinator
        assert isinstance(coordinator, GroupCoordinator), (
            "the consumer has started, and has a group"
        )
        return coordinator

    def _may_not_commit(self, offsets: Mapping[str, Place]) -> str | None:
        """Return why a commit must not be sent, or ``None``."""
        return "CoordinatorUnknown" if self._coordinator.coordinator_id is None else None

    async def _commit_now(self, offsets: Mapping[str, Place]) -> tuple[Outcome, str | None]:
        """Send a commit under the current generation."""
        places = {
            TopicPartition(*split(key)): OffsetAndMetadata(*to_commit(place))
            for key, place in offsets.items()
        }
        try:
            with its_assertions():
                await self._coordinator._do_commit_offsets(None, places)
        except KafkaError as error:
            return aio_errors.of_commit(error), name_of(error)
        return "ok", None


class Member(Grouped):
    """A consumer that subscribes."""

    def __init__(self, arguments: Mapping[str, Any], group: str, how: Mapping[str, Any]) -> None:
        # An assignor keeps its state in its class, so each member has a class of its own.
        assignor = type("Assignor", (ASSIGNORS[how["assignor"]],), {})
        mine = {
            "group_id": group,
            "group_instance_id": how["instance"],
            "partition_assignment_strategy": (assignor,),
            "enable_auto_commit": how["commit"] == "auto",
        }
        super().__init__({**arguments, **mine}, group)
        self._commits_when_revoked = how["commit"] == "listener"
        self._feed = Feed(group)
        self._doubt: str | None = None
        """The error of a commit by the listener whose outcome is in doubt."""
        self._polls = False
        self._doubts = False
        """Has ``aio_range.doubt`` wrapped this consumer?"""
        self._revoking = asyncio.Lock()

    async def subscribe(self, topics: list[str]) -> str | None:
        """Subscribe; the consumer joins the group in the background.

        Returns the error if the cluster was not found.
        """
        error = await self._start()
        if error is None:
            if not self._doubts:
                self._doubts = True
                aio_range.doubt(self._consumer)
            self._consumer.subscribe(topics, listener=_Listener(self))
        return error

    async def poll(self) -> tuple[list[MicroOp], str | None]:  # type: ignore[override]
        """Return the member's events, records last, and any error that ended the poll.

        It looks twice, because aiokafka joins and fetches in the background meanwhile. aiokafka
        joins only for a consumer that polls, so polls that take no records are announced to it as
        well.
        """
        try:
            with its_assertions(), self._consumer._subscription.fetch_context():
                if not await self._take_owned():
                    self._polls = True
                    await asyncio.sleep(POLL_TIMEOUT_S)
                    self._polls = False
                    async with self._revoking:  # its commit belongs to this poll
                        await self._take_owned()
                fetcher = self._consumer._fetcher
                if fetcher is not None and fetcher.error_future.done():
                    raise KafkaError("the task that fetches has ended")
        except KafkaError as error:
            await asyncio.sleep(REFUSED_S)
            return self._feed.take(), name_of(error)
        return self._feed.take(), self._doubt

    async def leave(self) -> str | None:
        """Leave the group; return the error if the result is in doubt."""
        error: BaseException | None
        try:
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                (error,) = await asyncio.gather(self._consumer.stop(), return_exceptions=True)
        except TimeoutError as late:
            error = late
        return None if error is None else name_of(error)

    def hold_back(self, thawed: asyncio.Event) -> None:
        """Hold requests to the coordinator from now on until the event is set."""

        async def held(request: Any) -> Any:
            await thawed.wait()
            return await self._heard(request)

        self._coordinator._send_req = held

    def let_through(self) -> None:
        """Send requests to the coordinator at once again."""
        self._coordinator._send_req = self._heard

    async def revoked(self, keys: set[str]) -> None:
        """Record that a rebalance takes partitions away, and commit if a listener does.

        A member that the coordinator does not know any more has lost its partitions, and commits
        nothing. A listener commits only during a poll, as in a client whose polls call it:
        otherwise no operation might ever report the commit.
        """
        known = self._coordinator.generation > 0
        offsets = {k: self._feed.positions[k] for k in sorted(keys) if k in self._feed.positions}
        if known and offsets and self._commits_when_revoked and self._polls:
            async with self._revoking:
                kind, error = await self._commit_now(offsets)
            if kind != "fail":
                self._feed.committed(offsets)
            if kind == "info":
                self._doubt = error  # the operation that reports the commit is in doubt, too
        if keys:
            generation = self._coordinator.generation if known else None
            self._feed.gone("revoked" if known else "lost", generation, keys)

    def assigned(self, keys: set[str]) -> None:
        self._feed.assigned(self._coordinator.generation, keys)

    def _may_not_commit(self, offsets: Mapping[str, Place]) -> str | None:
        subscription = self._consumer._subscription
        if self._coordinator.generation <= 0:
            return "UnknownMember"
        if subscription.reassignment_in_progress:
            return "RebalanceInProgress"
        if not all(subscription.is_assigned(TopicPartition(*split(key))) for key in offsets):
            return "NotAssigned"
        return super()._may_not_commit(offsets)

    async def _take_owned(self) -> bool:
        """Take records of owned partitions that have been fetched; were there any?

        aiokafka's method would wait for the end of a rebalance, however long that takes.
        """
        self._consumer._coordinator.check_errors()
        if self._consumer._subscription.reassignment_in_progress:
            return False
        self._note_beginnings()
        taken = await self._consumer.getmany(timeout_ms=0, max_records=POLL_RECORDS_MAX)
        for place, messages in taken.items():
            key = f"{place.topic}-{place.partition}"
            self._feed.read(
                key, [[m.offset, payload.decode(key, m.key, m.value)] for m in messages]
            )
        return self._feed.has_records

    def _note_beginnings(self) -> None:
        assignment = self._consumer._subscription.subscription.assignment
        for begins in self._feed.unplaced():
            for key in begins:
                state = assignment.state_value(TopicPartition(*split(key)))
                if begins[key] is None and state is not None and state.has_valid_position:
                    begins[key] = state.position


class _Listener(ConsumerRebalanceListener):  # type: ignore[misc]
    def __init__(self, member: Member) -> None:
        self._member = member

    async def on_partitions_revoked(self, revoked: set[TopicPartition]) -> None:
        await self._member.revoked(_keys(revoked))

    async def on_partitions_assigned(self, assigned: set[TopicPartition]) -> None:
        self._member.assigned(_keys(assigned))


def _keys(places: set[TopicPartition]) -> set[str]:
    return {f"{place.topic}-{place.partition}" for place in places}
