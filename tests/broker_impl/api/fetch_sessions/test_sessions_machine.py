"""A leader with fetch sessions against one without: the same requests, the same answers."""

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from broker_impl.log.aborted_index import Marker
from broker_impl.replica.events import Role
from broker_impl.wire import batch
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.api.fetch_sessions.leader_with_readers import (
    Leader,
    Reader,
    bytes_of,
    rows_of,
    without_records,
)

TPS = tuple(TopicPartition("t", number) for number in range(2))
PARTITIONS = st.sampled_from(TPS)
FOLLOWERS = (2,)
READERS = st.sampled_from([*FOLLOWERS, -1])
ROUNDS = st.integers(0, 2)
CHANGES_OF_READERS = ("follow", "follow", "leave", "start over", "isolation")
ORDERS = ("lead", "lead", "alone", "lose", "delete")


class SessionsAgainstFullFetches(RuleBasedStateMachine):
    """Every event happens to two leaders; only the first one receives incremental fetches."""

    def __init__(self) -> None:
        super().__init__()
        self.leaders = Leader(), Leader(slots=0)
        self.readers = {number: Reader(number) for number in (*FOLLOWERS, -1)}
        self.epochs = dict.fromkeys(TPS, 0)
        self.producer = 0
        for tp in TPS:
            self.order_role(tp, 1, (1, 2))
        self.all_catch_up()

    def order_role(self, tp: TopicPartition, leader: int, isr: tuple[int, ...]) -> None:
        for each in self.leaders:
            each.broker.order(leader, epoch=self.epochs[tp], isr=isr, replicas=(1, 2), tps=(tp,))

    def leads(self, tp: TopicPartition) -> bool:
        partition = self.leaders[1].replicas.partitions.get(tp)
        return partition is not None and partition.role is Role.LEADER

    def end(self, tp: TopicPartition) -> int:
        partition = self.leaders[1].replicas.partitions.get(tp)
        return 0 if partition is None else partition.log.end_offset

    @rule(tp=PARTITIONS, reader=READERS, what=st.sampled_from(CHANGES_OF_READERS))
    def change_reader(self, tp: TopicPartition, reader: int, what: str) -> None:
        """A reader changes what it fetches, or loses its session."""
        client = self.readers[reader]
        match what:
            case "follow":
                client.put(tp, current_leader_epoch=self.epochs[tp])
            case "leave":
                client.leave(tp)
            case "start over":
                client.start_over()
            case _:
                self.readers[-1].isolation ^= 1

    @rule(tp=PARTITIONS, count=st.integers(1, 3), rounds=ROUNDS)
    def append(self, tp: TopicPartition, count: int, rounds: int) -> None:
        """A producer appends."""
        if self.leads(tp):
            for each in self.leaders:
                each.broker.append(count, tp)
        self.all_fetch(rounds)

    @rule(tp=PARTITIONS, is_ended=st.booleans(), is_commit=st.booleans())
    def transact(self, tp: TopicPartition, is_ended: bool, is_commit: bool) -> None:
        """A producer begins a transaction, and perhaps ends it."""
        if not self.leads(tp):
            return
        self.producer += 1
        data = batch.encode_batch(
            [batch.Record(value=b"t", timestamp_ms=7)],
            producer_id=self.producer,
            producer_epoch=0,
            base_sequence=0,
            transactional=True,
        )
        for each in self.leaders:
            guard = each.replicas.guard(tp, self.producer)
            assert not each.replicas.append(tp, data, acks=1, guard=guard).error
            if is_ended:
                each.replicas.end_transaction(tp, Marker(self.producer, 0, is_commit, 0))

    @rule(tp=PARTITIONS, is_commit=st.booleans())
    def end_transactions(self, tp: TopicPartition, is_commit: bool) -> None:
        """The open transactions of a partition end."""
        if self.leads(tp):
            for each in self.leaders:
                for producer in range(1, self.producer + 1):
                    if each.replicas.guard(tp, producer) is None:
                        each.replicas.end_transaction(tp, Marker(producer, 0, is_commit, 0))

    @rule(tp=PARTITIONS, rounds=ROUNDS)
    def delete_records(self, tp: TopicPartition, rounds: int) -> None:
        """All committed records are deleted."""
        for each in self.leaders:
            each.replicas.delete_records(tp, -1)
        self.all_fetch(rounds)

    @rule(tp=PARTITIONS, what=st.sampled_from(ORDERS), all_know=st.booleans())
    def order(self, tp: TopicPartition, what: str, all_know: bool) -> None:
        """The broker leads in a new epoch, with its follower in sync or not, or leads no longer."""
        if what == "delete":
            for each in self.leaders:
                if tp in each.replicas.partitions:
                    each.broker.stop(epoch=-2, delete=True, tp=tp)
            self.epochs[tp] = -1
        else:
            self.epochs[tp] += 1
            self.order_role(tp, 2 if what == "lose" else 1, (1,) if what == "alone" else (1, 2))
        if all_know:
            self.all_catch_up()
        else:
            self.all_fetch(1)

    @rule(tp=PARTITIONS, succeeds=st.booleans())
    def write_isr(self, tp: TopicPartition, succeeds: bool) -> None:
        """ZooKeeper answers the write of an ISR."""
        first, second = (each.writes.pop(tp, None) for each in self.leaders)
        assert first == second
        if first is None:
            return
        for each in self.leaders:
            if succeeds:
                each.replicas.isr_written(tp, first.zk_version + 1)
            else:
                each.replicas.isr_write_refused(tp)
                each.replicas.isr_refreshed(
                    tp,
                    leader=1,
                    leader_epoch=first.leader_epoch,
                    isr=(1,),
                    zk_version=first.zk_version + 1,
                )

    @rule(tp=PARTITIONS)
    def keep_up(self, tp: TopicPartition) -> None:
        """A follower's fetches go on for some time before records are appended."""
        self.all_catch_up()
        self.wait(6.0, ticks=True)
        self.all_fetch(1)
        self.append(tp, 1, 0)
        self.wait(6.0, ticks=True)

    @rule(seconds=st.sampled_from([0.5, 6.0, 11.0]), ticks=st.booleans())
    def wait(self, seconds: float, ticks: bool) -> None:
        """Time passes, and leaders look for followers that lag."""
        for each in self.leaders:
            each.broker.now += seconds
            if ticks:
                each.replicas.tick()

    @rule(rounds=ROUNDS)
    def all_fetch(self, rounds: int) -> None:
        """All readers fetch, one after the other, and again."""
        for number in (*self.readers,) * rounds:
            self.fetch(number, takes=True)

    @rule(reader=READERS, takes=st.booleans())
    def fetch(self, reader: int, takes: bool) -> None:
        """A reader fetches; the session shows what a full fetch shows, and nothing twice."""
        client = self.readers[reader]
        full = rows_of(self.leaders[1].answer(client.full()))
        request = client.incremental()
        before = dict(client.known)
        response = self.leaders[0].answer(request)
        assert response.error_code == 0
        records = client.take(response)
        assert client.known == {tp: without_records(row) for tp, row in full.items()}
        assert records == {tp: bytes_of(row) for tp, row in full.items() if row.records}
        for tp, row in rows_of(response).items():
            news = row.records or row.error_code or row.diverging_epoch.epoch >= 0
            assert news or before.get(tp) != client.known[tp], "it was known"
        if takes:
            for tp, found in records.items():
                last = max(header.next_offset for _, header in batch.batches(memoryview(found)))
                client.put(tp, fetch_offset=last)

    @rule()
    def all_catch_up(self) -> None:
        """Readers learn the epochs and fetch until they have everything: partitions settle."""
        for number in (*FOLLOWERS, -1):
            for tp in TPS:
                self.readers[number].put(
                    tp, current_leader_epoch=self.epochs[tp], fetch_offset=self.end(tp)
                )
        for number in (*FOLLOWERS, -1) * 2:
            self.fetch(number, takes=True)

    @invariant()
    def replicas_are_alike(self) -> None:
        """The leaders have the same watermarks and ISRs, and propose the same changes of them."""
        first, second = (each.replicas.snapshot() for each in self.leaders)
        assert first == second
        assert self.leaders[0].writes == self.leaders[1].writes

    @invariant()
    def sessions_are_consistent(self) -> None:
        """A session's active partitions are its own, and those that are not settled."""
        for session in self.leaders[0].sessions._sessions.values():
            active = {tp for tp, each in session.partitions.items() if not each.is_settled}
            assert active == set(session.active)
            for tp in session.partitions:
                assert session.id in self.leaders[0].sessions.holders(tp)


TestSessionsAgainstFullFetches = SessionsAgainstFullFetches.TestCase
TestSessionsAgainstFullFetches.settings = settings(max_examples=40, stateful_step_count=40)
