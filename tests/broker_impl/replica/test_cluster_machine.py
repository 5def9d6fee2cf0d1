"""Three replicas under any order of elections, fetches, appends, deaths, late and lost messages.

After every step, all that any leader has committed is in the log, byte for byte, of every broker
that the controller may elect. In the end, with all faults healed, the logs converge.
"""

import dataclasses
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from broker_impl import mutants
from broker_impl.errors import ErrorCode
from broker_impl.wire import batch
from broker_impl.wire.messages.leader_and_isr_request import LeaderAndIsrRequest
from broker_impl.wire.types import Offset
from tests.broker_impl.replica.pure_cluster import (
    LAG_MAX_S,
    TP,
    Answer,
    Node,
    PureCluster,
    Question,
    Sent,
    ZkAnswer,
)

BROKERS = st.sampled_from((1, 2, 3))
PICK = st.integers(0, 7)
"""Selects one of the messages in flight."""
ROUNDS = st.lists(BROKERS, max_size=5)
IN_FLIGHT_MAX = 8


@dataclasses.dataclass
class Producer:
    """An idempotent producer that sends one record at a time, until it is acknowledged."""

    producer_id: int
    sequence: int = 0
    waiting: list[Sent] = dataclasses.field(default_factory=list)

    @property
    def value(self) -> str:
        return f"producer {self.producer_id} record {self.sequence}"


class ClusterMachine(RuleBasedStateMachine):
    """The state machine of random steps and invariants; see the module."""

    @initialize(isr_min=st.sampled_from((1, 2)), ready=st.booleans())
    def start(self, isr_min: int, ready: bool) -> None:
        self.isr_min = isr_min
        self.cluster = PureCluster(3, isr_min=isr_min)
        self.orders: list[LeaderAndIsrRequest] = []
        self.questions: list[Question] = []
        self.answers: list[Answer] = []
        self.zk_answers: list[ZkAnswer] = []
        self.producers = [Producer(1), Producer(2)]
        self.pending: list[Sent] = []
        self.committed: list[bytes] = []
        self.told_end: Offset = 0
        self.values_sent = 0
        self.dead_unnoticed: set[int] = set()
        self.cluster.on_commit = self.on_commit
        self.cluster.elect(1)
        if ready:
            self.cluster.catch_up()

    # There are few rules, so that each is chosen often; rare steps are kinds of one rule.

    @rule(records=st.integers(0, 3), once=st.sampled_from((None, 0, 1)), rounds=ROUNDS)
    def work(self, records: int, once: int | None, rounds: list[int]) -> None:
        """Produce and fetch, as a healthy cluster does most of the time."""
        leader = self.cluster.state.leader
        for _ in range(records):
            self.produce(leader, -1)
        if once is not None:
            self.produce_once(leader, once)
        self.fetch(rounds)

    @rule(rounds=ROUNDS)
    def fetch(self, rounds: list[int]) -> None:
        for broker in rounds:
            self.cluster.fetch(broker)

    @rule(kind=st.sampled_from(("acks=all", "acks=1", "once", "the end")), broker=BROKERS)
    def client(self, kind: str, broker: int) -> None:
        """Send a request of a client that may know an old leader."""
        if kind == "once":
            self.produce_once(broker, broker % 2)
        elif kind == "the end":
            self.ask_for_the_end(broker)
        else:
            self.produce(broker, -1 if kind == "acks=all" else 1)

    @rule(seconds=st.sampled_from((0.0, LAG_MAX_S / 2, LAG_MAX_S + 1)))
    def tick(self, seconds: float) -> None:
        self.cluster.tick(seconds)

    @rule(rounds=ROUNDS, written=st.booleans())
    def fall_behind(self, rounds: list[int], written: bool) -> None:
        """Let replicas that do not fetch for a while leave the ISR, and others return to it."""
        self.produce(self.cluster.state.leader, 1)
        self.cluster.tick(LAG_MAX_S + 1)
        self.fetch(rounds)
        if written:
            self.cluster.settle_zk()

    @rule(rounds=st.integers(0, 3))
    def quiet_spell(self, rounds: int) -> None:
        """Start all brokers, deliver their orders, fetch for a while; held messages stay held."""
        for broker in self.cluster.brokers:
            self.start_again(broker)
            self.cluster.deliver_orders(broker)
        for _ in range(rounds):
            self.fetch([1, 2, 3])
            self.cluster.settle_zk()

    @rule(
        kind=st.sampled_from(("ask", "serve", "serve a copy", "take", "take a copy", "lose all")),
        broker=BROKERS,
        pick=PICK,
    )
    def message(self, kind: str, broker: int, pick: int) -> None:
        """Delay, reorder, repeat or lose a request or response of a follower."""
        if kind == "ask":
            question = self.cluster.ask(broker)
            if question is not None and len(self.questions) < IN_FLIGHT_MAX:
                self.questions.append(question)
        elif kind == "lose all":
            self.questions.clear()
            self.answers.clear()
        elif kind.startswith("serve") and self.questions:
            at = pick % len(self.questions)
            question = self.questions.pop(at) if kind == "serve" else self.questions[at]
            answer = self.cluster.serve(question)
            if answer is not None and len(self.answers) < IN_FLIGHT_MAX:
                self.answers.append(answer)
        elif kind.startswith("take") and self.answers:
            at = pick % len(self.answers)
            self.cluster.take(self.answers.pop(at) if kind == "take" else self.answers[at])

    @precondition(lambda self: self.cluster.zk_requests or self.zk_answers)
    @rule(
        kind=st.sampled_from(("do", "serve", "lose", "doubt", "answer", "lose answer")), pick=PICK
    )
    def zookeeper(self, kind: str, pick: int) -> None:
        """Delay, reorder or lose a write or read of the znode, or its response."""
        cluster, requests = self.cluster, self.cluster.zk_requests
        if "answer" in kind and self.zk_answers:
            answer = self.zk_answers.pop(pick % len(self.zk_answers))
            lost = kind == "lose answer"
            cluster.take_zk(dataclasses.replace(answer, result=None) if lost else answer)
        elif requests:
            request = requests[pick % len(requests)]
            if kind == "do":
                cluster.take_zk(cluster.serve_zk(request))
            elif kind == "serve":
                self.zk_answers.append(cluster.serve_zk(request))
            elif kind == "lose":
                cluster.take_zk(cluster.lose_zk(request))
            elif kind == "doubt":
                # The broker learns of a lost connection, while the request is still on its way.
                cluster.take_zk(ZkAnswer(request, None))

    @rule(pick=PICK, tail=st.integers(0, 2), told=ROUNDS)
    def elect(self, pick: int, tail: int, told: list[int]) -> None:
        """Elect any live member of the ISR, while the old leader alone has some records."""
        cluster = self.cluster
        candidates = [broker for broker in cluster.state.isr if cluster.nodes[broker].up]
        if candidates:
            for _ in range(tail):
                self.produce(cluster.state.leader, 1)
            cluster.elect(candidates[pick % len(candidates)], deliver=False)
            self.orders.append(cluster.order())
        self.tell(told)

    @rule(told=ROUNDS)
    def tell(self, told: list[int]) -> None:
        """Deliver the controller's orders, to each broker in their order."""
        for broker in told:
            self.cluster.deliver_orders(broker)

    @precondition(lambda self: self.orders)
    @rule(broker=BROKERS, pick=PICK)
    def repeat_an_order(self, broker: int, pick: int) -> None:
        """Repeat an order, as the controller or one that was replaced may do."""
        node = self.cluster.nodes[broker]
        if node.partition is not None:
            node.replicas.leader_and_isr(self.orders[pick % len(self.orders)])

    @rule(
        kind=st.sampled_from(("kill", "kill and notice", "notice", "start", "checkpoint")),
        broker=BROKERS,
    )
    def death(self, kind: str, broker: int) -> None:
        """Kill and start processes; the controller notices a death at any time before the start."""
        node = self.cluster.nodes[broker]
        if kind.startswith("kill") and node.up:
            node.kill()
            self.dead_unnoticed.add(broker)
        if "notice" in kind:
            self.notice_death(broker)
        elif kind == "start":
            self.start_again(broker)
        elif kind == "checkpoint" and node.up:
            node.checkpoint()

    # Steps of the rules.

    def produce(self, broker: int, acks: int) -> None:
        if broker < 0 or not self.cluster.nodes[broker].up:
            return
        self.values_sent += 1
        sent = self.cluster.produce(broker, f"value {self.values_sent}", acks=acks)
        if acks == -1 and not sent.result.error:
            self.pending.append(sent)

    def produce_once(self, broker: int, which: int) -> None:
        if broker < 0 or not self.cluster.nodes[broker].up:
            return
        producer = self.producers[which]
        sent = self.cluster.produce(
            broker,
            producer.value,
            producer=producer.producer_id,
            sequence=producer.sequence,
        )
        if not sent.result.error:
            producer.waiting.append(sent)

    def ask_for_the_end(self, broker: int) -> None:
        node = self.cluster.nodes[broker]
        if not self.is_legitimate(node):
            return
        found = node.replicas.list_offset(TP, timestamp=-1)
        if found.error is ErrorCode.NONE:
            assert found.offset >= self.told_end, "clients saw the end of the log go back"
            self.told_end = found.offset

    def notice_death(self, broker: int) -> None:
        if broker in self.dead_unnoticed:
            self.dead_unnoticed.remove(broker)
            self.cluster.notice_death(broker)

    def start_again(self, broker: int) -> None:
        if not self.cluster.nodes[broker].up:
            self.notice_death(broker)
            self.cluster.nodes[broker].start()
            self.cluster.notice_start(broker)

    # Invariants.

    def is_legitimate(self, node: Node) -> bool:
        """Whether the node leads in the epoch of the znode."""
        state, partition = self.cluster.state, node.partition
        return (
            node.broker_id == state.leader
            and node.leads
            and partition is not None
            and partition.leader_epoch == state.leader_epoch
        )

    def on_commit(self, node: Node, to: Offset) -> None:
        """Record what a leader, legitimate or not, has committed, and compare earlier commits."""
        below = node.contents()[:to]
        known = len(self.committed)
        assert below[:known] == self.committed[:to], "two leaders committed different records"
        self.committed += below[known:]

    @invariant()
    def holds(self) -> None:
        """Check all invariants, causes before their consequences."""
        self.contents = {b: node.contents() for b, node in self.cluster.nodes.items()}
        self.there_is_one_committed_history()
        self.whoever_may_lead_holds_it_all()
        self.what_is_acknowledged_is_committed()
        self.no_record_is_there_twice()

    def there_is_one_committed_history(self) -> None:
        """R4, R6: below any high watermark every broker has the records that leaders committed."""
        for node in self.cluster.nodes.values():
            if node.partition is not None:
                high_watermark = node.partition.high_watermark
                below = self.contents[node.broker_id][:high_watermark]
                assert below == self.committed[:high_watermark], "two histories"

    def what_is_acknowledged_is_committed(self) -> None:
        """R11: acks=all means committed, on at least min.insync.replicas replicas."""
        self.pending = [sent for sent in self.pending if not self.settled(sent)]
        for producer in self.producers:
            if any(list(map(self.settled, producer.waiting))):
                producer.waiting.clear()
                producer.sequence += 1

    def settled(self, sent: Sent) -> bool:
        if self.cluster.outcome(sent) is not ErrorCode.NONE:
            return False
        at = sent.result.base_offset
        assert at < len(self.committed), "acknowledged before it was committed"
        record = self.committed[at]
        assert sent.value.encode() in record, "acknowledged, and another record is in its place"
        holders = [broker for broker, batches in self.contents.items() if record in batches]
        assert len(holders) >= self.isr_min, "acknowledged with fewer replicas than asked for"
        return True

    def whoever_may_lead_holds_it_all(self) -> None:
        """R1, R2, R3, and thus R5: every broker that may lead has all committed records."""
        known = len(self.committed)
        state = self.cluster.state
        for broker in {*state.isr, state.leader} - {-1}:
            node = self.cluster.nodes[broker]
            assert self.contents[broker][:known] == self.committed, f"{broker} lacks something"
            if self.is_legitimate(node):
                assert node.partition is not None
                assert node.partition.maximal_isr >= set(state.isr), "an ISR behind the leader"

    def no_record_is_there_twice(self) -> None:
        """P3: a record that an idempotent producer sent again was recognized as a duplicate."""
        for batches in self.contents.values():
            bodies = {data[batch.HEADER_BYTES :] for data in batches}
            assert len(bodies) == len(batches), "a record was appended twice"

    def teardown(self) -> None:
        """Heal everything: the logs converge, the ISR is full, and all records are committed."""
        if not hasattr(self, "committed"):
            return
        cluster = self.cluster
        for answer in self.zk_answers:
            cluster.take_zk(answer)
        for broker in cluster.brokers:
            self.start_again(broker)
            cluster.deliver_orders(broker)
        if cluster.state.leader == -1:
            cluster.elect(cluster.state.isr[0])
        for _ in range(3):
            cluster.tick()
            cluster.settle_zk()
            cluster.catch_up()
        self.holds()
        assert cluster.state.isr == cluster.brokers, "the ISR did not fill up again"
        for node in cluster.nodes.values():
            assert node.partition is not None
            assert self.contents[node.broker_id] == self.committed, "the logs did not converge"
            assert node.partition.high_watermark == len(self.committed)
        assert all(cluster.outcome(sent) is not None for sent in self.waiting_at_the_leader())

    def waiting_at_the_leader(self) -> Iterator[Sent]:
        for sent in self.pending:
            node = self.cluster.nodes[sent.broker]
            if node.incarnation == sent.incarnation:
                yield sent


def run(examples: int, *, shrink: bool) -> None:
    """Run the machine on the same examples each time, so that failures are reproducible."""
    run_state_machine_as_test(
        ClusterMachine,
        settings=settings(
            max_examples=examples,
            stateful_step_count=60,
            derandomize=True,
            database=None,
            phases=[Phase.generate, Phase.shrink] if shrink else [Phase.generate],
            suppress_health_check=list(HealthCheck),
        ),
    )


@pytest.mark.slow
def test_nothing_committed_is_ever_lost() -> None:
    """The guarantees hold at each step under any order of events, and the cluster recovers."""
    run(200, shrink=True)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mutant", "shows"),
    [
        ("ack-on-local-append", "acknowledged before it was committed"),
        ("no-min-isr-check", "acknowledged with fewer replicas than asked for"),
        ("pstate-not-replicated", "a record was appended twice"),
        ("truncate-to-hw-loss", "lacks something"),
    ],
)
def test_a_planted_bug_is_found(mutant: str, shows: str) -> None:
    """The machine finds a planted bug by the invariant that it breaks."""
    mutants.plant([mutant])
    try:
        with pytest.raises(AssertionError, match=shows):
            run(600, shrink=False)
    finally:
        mutants.removed()
