"""Passes what simulated coordinators answer to `checkers.invariants.coordinated`."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from broker_impl.coordinator.groups.group import Group
from broker_impl.coordinator.transactions.metadata import Metadata
from broker_impl.node.broker import Broker
from broker_impl.wire.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from broker_impl.wire.messages.add_partitions_to_txn_request import AddPartitionsToTxnRequest
from broker_impl.wire.messages.delete_groups_request import DeleteGroupsRequest
from broker_impl.wire.messages.end_txn_request import EndTxnRequest
from broker_impl.wire.messages.heartbeat_request import HeartbeatRequest
from broker_impl.wire.messages.init_producer_id_request import InitProducerIdRequest
from broker_impl.wire.messages.join_group_request import JoinGroupRequest
from broker_impl.wire.messages.offset_commit_request import OffsetCommitRequest
from broker_impl.wire.messages.sync_group_request import SyncGroupRequest
from broker_impl.wire.messages.txn_offset_commit_request import TxnOffsetCommitRequest
from broker_impl.wire.types import TopicPartition
from checkers.invariants import coordinated
from checkers.invariants.coordinated import Said, Transaction
from checkers.invariants.subscriptions import Joined, Subscriptions
from harness.cluster.observe.reporter import Reporter

OnAnswer = Callable[[Any], None]


@dataclass
class Producers:
    """What all coordinators of a run have answered to producers so far."""

    issued: dict[int, int] = field(default_factory=dict)
    """The highest epoch that was issued, by producer id."""
    added: dict[tuple[str, int, int], set[str]] = field(default_factory=dict)
    """The partitions that were added to an open transaction, by transactional id, producer id and
    epoch."""


class CoordinatorWitness:
    """Sees the requests of members and producers to one life of a broker, and their answers.

    Args:
        reporter: reports violations in the broker's answers.
        broker: the broker.
        producers: what all brokers have answered to producers.
    """

    def __init__(self, reporter: Reporter, broker: Broker, producers: Producers) -> None:
        self._reporter = reporter
        self._broker = broker
        self._producers = producers
        self._seen: dict[str, Group] = {}
        """The groups as this broker has created or loaded them."""
        self._joins: Counter[tuple[str, str]] = Counter()
        """The JoinGroup requests so far, by group and member."""
        self._former: dict[str, tuple[int, Mapping[str, int]]] = {}
        """The last generation of each group that began here, and how often its members had joined
        until then."""
        self._given: dict[tuple[str, int], list[Mapping[str, bytes]]] = {}
        """The assignments that leaders have sent, by group and generation."""
        self._listed: dict[tuple[str, int], Mapping[str, str]] = {}
        """The static members of which leaders were notified, by group and generation: the member
        id of each instance id."""
        self._subscriptions = Subscriptions()

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        match request:
            case HeartbeatRequest():
                right = self._of(request, coordinated.on_heartbeat)
                return lambda answer: self._member(request, right, answer.error_code)
            case OffsetCommitRequest():
                right = self._of(request, coordinated.on_commit)
                return lambda answer: self._committed(request, right, answer)
            case TxnOffsetCommitRequest():
                group = self._group(request.group_id)
                return lambda answer: self._committed_in_transaction(request, group, answer)
            case SyncGroupRequest():
                return self._sync(request)
            case JoinGroupRequest():
                self._joins[request.group_id, request.member_id] += 1
                if request.group_instance_id and not request.member_id:
                    self._subscriptions.forget(request.group_id)
                not_rebalanced = self._rejoins(request)
                return lambda answer: self._joined(request, not_rebalanced, answer)
            case DeleteGroupsRequest():
                before = {name: self._group(name) for name in request.groups_names}
                return lambda answer: self._deleted(before, answer)
            case AddPartitionsToTxnRequest() if not request.transactions:
                was = self._transaction(request.v3_and_below_transactional_id)
                return lambda answer: self._added(request, was, answer)
            case AddOffsetsToTxnRequest():
                was = self._transaction(request.transactional_id)
                return lambda answer: self._added_offsets(request, was, answer)
            case EndTxnRequest():
                return self._end(request)
            case InitProducerIdRequest() if request.transactional_id:
                highest = dict(self._producers.issued)
                was = self._transaction(request.transactional_id)
                return lambda answer: self._issued(request, highest, was, answer)
            case _:
                return None

    # Groups.

    def _group(self, name: str) -> coordinated.Group | None:
        found = self._broker.groups.find(name)
        if not isinstance(found, Group):
            return None
        if self._seen.get(name) is not found:
            self._forget(name)
            self._seen[name] = found
        return group_state(found)

    def _forget(self, name: str) -> None:
        """Forget the generations of a group: another one may have had its name since."""
        self._former.pop(name, None)
        self._subscriptions.forget(name)
        for known in (self._given, self._listed):
            for key in [key for key in known if key[0] == name]:
                del known[key]

    def _of(
        self, request: Any, rule: Callable[[coordinated.Group, Said], int | None]
    ) -> int | None:
        group = self._group(request.group_id)
        said = Said(request.member_id, request.generation_id, request.group_instance_id)
        return None if group is None else rule(group, said)

    def _member(self, request: Any, right: int | None, given: int) -> None:
        why = coordinated.misjudged(right, given)
        name = type(request).__name__.removesuffix("Request")
        self._found("member-refused", f"group {request.group_id}", why, f"{name}: ")

    def _committed_in_transaction(
        self, request: TxnOffsetCommitRequest, before: coordinated.Group | None, answer: Any
    ) -> None:
        said = Said(request.member_id, request.generation_id, request.group_instance_id)
        now = self._group(request.group_id)
        self._committed(request, coordinated.on_transactional_commit(before, now, said), answer)

    def _committed(
        self,
        request: OffsetCommitRequest | TxnOffsetCommitRequest,
        right: int | None,
        answer: Any,
    ) -> None:
        codes = [row.error_code for topic in answer.topics for row in topic.partitions]
        if codes:
            self._member(request, right, codes[0])

    def _sync(self, request: SyncGroupRequest) -> OnAnswer:
        right = self._of(request, coordinated.on_sync)
        key = request.group_id, request.generation_id
        if request.assignments:
            given = {row.member_id: bytes(row.assignment) for row in request.assignments}
            self._given.setdefault(key, []).append(given)

        def on_answer(answer: Any) -> None:
            self._member(request, right, answer.error_code)
            # A static member that came again has the assignment of its former member id (KIP-345).
            former = self._listed.get(key, {}).get(request.group_instance_id or "", "")
            sent = [
                each[member]
                for each in self._given.get(key, ())
                for member in (request.member_id, former)
                if member in each
            ]
            if not answer.error_code and sent and bytes(answer.assignment) not in sent:
                why = f"{request.member_id} received another assignment than its leader has sent"
                self._found("assigned-as-given", f"group {request.group_id}", why)

        return on_answer

    def _rejoins(self, request: JoinGroupRequest) -> Callable[[int], str | None]:
        """Return a function that judges whether the group may go on in a generation."""
        found = self._broker.groups.find(request.group_id)
        member = found.members.get(request.member_id) if isinstance(found, Group) else None
        if not isinstance(found, Group) or member is None:
            return lambda generation: None
        asked = {row.name: bytes(row.metadata) for row in request.protocols}
        return partial(
            coordinated.not_rebalanced,
            group_state(found),
            member.id,
            is_changed=list(member.protocols.items()) != list(asked.items()),
            is_leader=member.id == found.leader,
        )

    def _joined(
        self, request: JoinGroupRequest, not_rebalanced: Callable[[int], str | None], answer: Any
    ) -> None:
        name = request.group_id
        group = self._group(name)
        if answer.error_code or group is None:
            return
        about = f"group {name}"
        self._found("joined-as-member", about, not_rebalanced(answer.generation_id))
        why = coordinated.joined(group, answer.member_id, answer.generation_id)
        self._found("joined-as-member", about, why)
        self._subscribed(request, answer)
        if not answer.members:
            return
        why = coordinated.too_large(len(answer.members), self._broker.config.group_max_size)
        self._found("joined-as-member", about, why)
        listed = {row.member_id: row.group_instance_id for row in answer.members}
        counts = {member: self._joins[name, member] for member in listed}
        instances = {instance: member for member, instance in listed.items() if instance}
        # A new group of this name has low numbers of generations again.
        self._listed[name, answer.generation_id] = instances
        self._given.pop((name, answer.generation_id), None)
        former = self._former.get(name)
        if former is not None and former[0] == answer.generation_id - 1:
            why = coordinated.not_rejoined(former[1], self._counts(name, former[1]), listed)
            self._found("joined-as-member", about, why)
        if former is None or former[0] != answer.generation_id:
            self._former[name] = answer.generation_id, counts

    def _subscribed(self, request: JoinGroupRequest, answer: Any) -> None:
        one = Joined(
            answer.member_id,
            answer.generation_id,
            answer.leader,
            answer.protocol_name,
            {row.name: bytes(row.metadata) for row in request.protocols},
            {row.member_id: bytes(row.metadata) for row in answer.members},
        )
        for why in self._subscriptions.joined(request.group_id, one):
            self._found("subscribed-as-sent", f"group {request.group_id}", why)

    def _counts(self, name: str, members: Mapping[str, int]) -> dict[str, int]:
        return {member: self._joins[name, member] for member in members}

    def _deleted(self, before: Mapping[str, coordinated.Group | None], answer: Any) -> None:
        for row in answer.results:
            group = before.get(row.group_id)
            if not row.error_code and group is not None:
                why = coordinated.deleted(group)
                self._found("group-deleted-unused", f"group {row.group_id}", why)

    # Transactions.

    def _transaction(self, name: str) -> Transaction | None:
        found = self._broker.transactions.describe(name)
        if not isinstance(found, Metadata):
            return None
        return Transaction(
            found.producer_id,
            found.producer_epoch,
            found.state.name,
            {str(tp) for tp in found.partitions},
            found.last_producer_epoch,
        )

    def _added(
        self, request: AddPartitionsToTxnRequest, was: Transaction | None, answer: Any
    ) -> None:
        rows = [
            (str(TopicPartition(topic.name, row.partition_index)), row.partition_error_code)
            for topic in answer.results_by_topic_v3_and_below
            for row in topic.results_by_partition
        ]
        producer = request.v3_and_below_producer_id, request.v3_and_below_producer_epoch
        added = {key for key, code in rows if not code}
        if added:
            self._has(request.v3_and_below_transactional_id, producer, added, was)

    def _added_offsets(
        self, request: AddOffsetsToTxnRequest, was: Transaction | None, answer: Any
    ) -> None:
        if not answer.error_code:
            home = str(self._broker.groups.partition_of(request.group_id))
            producer = request.producer_id, request.producer_epoch
            self._has(request.transactional_id, producer, {home}, was)

    def _has(
        self, name: str, producer: tuple[int, int], added: set[str], was: Transaction | None
    ) -> None:
        """Judge that these partitions were added to a producer's transaction."""
        now = self._transaction(name)
        self._found("producer-refused", name, coordinated.of_producer(was, now, *producer))
        if now is not None and (now.producer, now.epoch) == producer:
            if now.state == coordinated.ONGOING:
                self._producers.added.setdefault((name, *producer), set()).update(added)
            self._kept(name, now)

    def _kept(self, name: str, now: Transaction) -> None:
        added = self._producers.added.get((name, now.producer, now.epoch), set())
        self._found("added-partition-kept", name, coordinated.missing(now, added))

    def _end(self, request: EndTxnRequest) -> OnAnswer:
        name = request.transactional_id
        producer = request.producer_id, request.producer_epoch
        was = self._transaction(name)
        if was is not None and (was.producer, was.epoch) == producer:
            self._kept(name, was)
        if was is None or (was.producer, was.epoch) == producer:
            self._producers.added.pop((name, *producer), None)

        def on_answer(answer: Any) -> None:
            if was is None:  # the request waited until the coordinator had loaded its state
                self._producers.added.pop((name, *producer), None)
            if answer.error_code:
                return
            now = self._transaction(name)
            self._found("producer-refused", name, coordinated.of_producer(was, now, *producer))
            if was is not None:
                why = coordinated.ended(was, is_commit=request.committed)
                self._found("producer-refused", name, why)

        return on_answer

    def _issued(
        self,
        request: InitProducerIdRequest,
        highest: Mapping[int, int],
        was: Transaction | None,
        answer: Any,
    ) -> None:
        if answer.error_code:
            return
        name = request.transactional_id or ""
        producer, epoch = answer.producer_id, answer.producer_epoch
        if request.producer_id < 0:
            why = coordinated.issued(highest.get(producer), epoch)
            self._found("epoch-issued-once", name, why)
        named = request.producer_id, request.producer_epoch
        why = coordinated.named(was, *named, (producer, epoch))
        self._found("producer-refused", name, why)
        known = self._producers.issued.get(producer, -1)
        self._producers.issued[producer] = max(known, epoch)

    def _found(self, invariant: str, about: str, why: str | None, prefix: str = "") -> None:
        self._reporter.found(invariant, why and prefix + why, about=about)


def group_state(group: Group) -> coordinated.Group:
    """Return a group, as its coordinator has it."""
    members = {member.id: member.instance_id for member in group.members.values()}
    return coordinated.Group(group.state.value, group.generation, members)
