"""Consumer groups by aiokafka: members that come and go, and outsiders that only commit.

**A commit is one request.** aiokafka's own goes on until it has an answer that ends it, and tells
of the last attempt only: a refusal says nothing of the attempts before it, and what is sent again
after a rebalance goes under the new generation. So a request is made once here, and only by a
member whose assignment stands; its answer is certain or in doubt by what it says.

**A crash says nothing.** A process that ends without ``leave`` takes its connections with it and
tells the coordinator nothing, which aiokafka has no way of doing: its tasks are ended one by one.

**A refusal to tell offsets is heard here.** Since version 2 an answer to OffsetFetch has an error
for the group as a whole, which aiokafka does not look at: it takes a coordinator that still loads,
or is none, to say that nothing is committed, and begins anew (``docs/findings``, 13).

**Out of range is heard where it is so.** A former leader may say it of what was committed since;
``workloads.client.aio_range`` tells the two apart.

**A freeze holds back what the coordinator would hear.** Tasks of one loop cannot stand still while
the others go on, but what they would send can wait until the freeze is over.
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
from workloads.client.aio import AioClient, Reader, end_task, its_assertions, name_of, stop_client
from workloads.client.aio_offset_delete import OffsetDeleteRequest
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
"""By the name that goes over the wire."""

LEAVE_TIMEOUT_S = 5.0
"""How long a member may take to take its leave."""


class GroupAioClient(GroupClient, AioClient):
    """By aiokafka."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._member_arguments = {**self._common, **member_arguments(settings.consumer)}
        self._member: Member | None = None
        self._outsiders: dict[str, Grouped] = {}

    async def close(self) -> None:
        """As a crash: nobody is told."""
        used = [*self._outsiders.values(), *([self._member] if self._member else [])]
        self._outsiders, self._member = {}, None
        await asyncio.gather(super().close(), *(each.close() for each in used))

    async def _subscribe(self, op: Op) -> Op:
        ((_, group, topics, how),) = op.value
        if self._member is None:
            self._member = Member(self._member_arguments, group, how)
        assert self._member.group == group, "a process is of one group for life"
        error = await self._member.subscribe(topics)
        return completed(op, "ok" if error is None else "fail", op.value, error)

    async def _commit(self, op: Op) -> Op:
        """With a freeze before it: right before the request is sent."""
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
        """Nothing reaches the coordinator for so long; then what is done within goes first."""
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
        """How aiokafka asks the coordinator."""

    async def start(self) -> str | None:
        """The error by which the cluster was not found in time."""
        return await self._start()

    async def _start(self) -> str | None:
        error = await super()._start()
        if error is None and self._send is None:
            self._send = self._coordinator._send_req
            self._coordinator._send_req = self._heard
        return error

    async def _heard(self, request: Any) -> Any:
        """An answer in which nothing is refused to the group as a whole."""
        assert self._send is not None, "it has started"
        answer = await self._send(request)
        if isinstance(request, OffsetFetchRequest | OffsetDeleteRequest) and answer.error_code:
            refused = for_code(answer.error_code)
            if refused in (NotCoordinatorForGroupError, GroupCoordinatorNotAvailableError):
                self._coordinator.coordinator_dead()
            raise refused(self.group)
        return answer

    async def commit(self, offsets: Mapping[str, Place]) -> tuple[Outcome, str | None]:
        """Once; what came of it, and the name of the error."""
        if (why := await self._find_coordinator()) is not None:
            return "fail", why
        async with self._coordinator._commit_lock:
            if (why := self._may_not_commit(offsets)) is not None:
                return "fail", why
            return await self._commit_now(offsets)

    async def delete(self, keys: Iterable[str]) -> tuple[Outcome, str | None]:
        """Have it forgotten what is committed of these, asked for once; as :meth:`commit`."""
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
        """The error by which it was not found."""
        try:
            async with asyncio.timeout(QUERY_TIMEOUT_S):
                await self._coordinator.ensure_coordinator_known()
        except (KafkaError, TimeoutError) as error:
            return name_of(error)
        return None

    async def committed(self, keys: list[str]) -> dict[str, Place | None]:
        """By key: the offset that is committed, as the coordinator has it; ``None`` for none."""
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
        """End without a word to the coordinator."""
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
                coordinator._closing.set_result(None)  # what stops a consumer finds it stopped
        await super().close()
        # One whose leave has failed half-way counts as stopped.
        await stop_client(self._consumer._client.close, self._consumer._client.close)

    @property
    def _coordinator(self) -> GroupCoordinator:
        coordinator = self._consumer._coordinator
        assert isinstance(coordinator, GroupCoordinator), "it has started, and has a group"
        return coordinator

    def _may_not_commit(self, offsets: Mapping[str, Place]) -> str | None:
        """Why nothing is sent."""
        return "CoordinatorUnknown" if self._coordinator.coordinator_id is None else None

    async def _commit_now(self, offsets: Mapping[str, Place]) -> tuple[Outcome, str | None]:
        """What is sent is under the generation of this moment."""
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
        # What an assignor remembers lies in its class, and is nobody else's.
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
        """What went wrong with a commit of the listener, when nobody knows what came of it."""
        self._polls = False
        self._doubts = False
        """Does it ask again where it is told that a place is out of range?"""
        self._revoking = asyncio.Lock()

    async def subscribe(self, topics: list[str]) -> str | None:
        """The error by which the cluster was not found; the group is joined in the background."""
        error = await self._start()
        if error is None:
            if not self._doubts:
                self._doubts = True
                aio_range.doubt(self._consumer)
            self._consumer.subscribe(topics, listener=_Listener(self))
        return error

    async def poll(self) -> tuple[list[MicroOp], str | None]:  # type: ignore[override]
        """What the member was told, records last; and the error that ended the poll, if any.

        Looks twice: aiokafka joins and fetches by itself meanwhile. It joins only for somebody who
        polls, by its own account, and so it is told of polls that do not ask it for records.
        """
        try:
            with its_assertions(), self._consumer._subscription.fetch_context():
                if not await self._take_owned():
                    self._polls = True
                    await asyncio.sleep(POLL_TIMEOUT_S)
                    self._polls = False
                    async with self._revoking:  # what it has begun belongs to this poll
                        await self._take_owned()
                fetcher = self._consumer._fetcher
                if fetcher is not None and fetcher.error_future.done():
                    raise KafkaError("the task that fetches has ended")
        except KafkaError as error:
            return self._feed.take(), name_of(error)
        return self._feed.take(), self._doubt

    async def leave(self) -> str | None:
        """Take leave of the group; the error by which that is in doubt."""
        error: BaseException | None
        try:
            async with asyncio.timeout(LEAVE_TIMEOUT_S):
                (error,) = await asyncio.gather(self._consumer.stop(), return_exceptions=True)
        except TimeoutError as late:
            error = late
        return None if error is None else name_of(error)

    def hold_back(self, thawed: asyncio.Event) -> None:
        """What is for the coordinator from now on is sent when that has happened."""

        async def held(request: Any) -> Any:
            await thawed.wait()
            return await self._heard(request)

        self._coordinator._send_req = held

    def let_through(self) -> None:
        """What is for the coordinator from now on is sent at once."""
        self._coordinator._send_req = self._heard

    async def revoked(self, keys: set[str]) -> None:
        """The group rebalances: what was owned is owned no longer. One whom the coordinator does
        not know any more has lost it, and has nothing to say.

        A listener commits while somebody polls, as it does where it is called by polls: what is
        committed otherwise no operation might ever tell.
        """
        known = self._coordinator.generation > 0
        offsets = {k: self._feed.positions[k] for k in sorted(keys) if k in self._feed.positions}
        if known and offsets and self._commits_when_revoked and self._polls:
            async with self._revoking:
                kind, error = await self._commit_now(offsets)
            if kind != "fail":
                self._feed.committed(offsets)
            if kind == "info":
                self._doubt = error  # and so is the operation that tells of it
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
        """Take what has been fetched of what is owned; was there anything?

        A look while the group rebalances would wait for its end, however long that takes.
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
