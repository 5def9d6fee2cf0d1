"""White-box checks during a simulated run: a monitor checks snapshots of the cluster's state.

The snapshots are taken between events and checked immediately. Violations are written to a file in
the run's folder when they are found, and the verdict reads that file. The checks do not influence
the run: they start no process, draw no random number and take no virtual time.
"""

from collections.abc import Callable, Mapping
from typing import Final

from broker_impl.node.broker import Broker
from broker_impl.replica.replicas import Replicas
from broker_impl.wire.types import TopicPartition
from broker_impl.zookeeper.history import History
from checkers.expectations import Contract
from checkers.invariants.after_kill import Known
from checkers.invariants.answers import Answers
from checkers.invariants.deleted_offsets import CommittedOffsets
from checkers.invariants.ensemble.after_kill import HeldHistory
from checkers.invariants.fetched_offsets import Commits
from checkers.invariants.kept_settings import KeptSettings
from checkers.invariants.step import Rules
from checkers.invariants.stored_members import StoredMembers
from checkers.invariants.transaction_times import TransactionTimes
from checkers.invariants.watch import Watch
from harness.cluster import settings
from harness.cluster.observe.reloaded_coordinators import Difference, ReloadedCoordinators
from harness.cluster.observe.reopened_histories import ReopenedHistory
from harness.cluster.observe.reopened_logs import ReopenedLogs
from harness.cluster.observe.reporter import Reporter
from harness.cluster.observe.snapshots import Snapshots, peeking
from harness.cluster.observe.witnessed_answers import See, Witness
from harness.cluster.observe.witnessed_coordinators import CoordinatorWitness, Producers
from harness.cluster.observe.witnessed_deletions import DeletionWitness, Running
from harness.cluster.observe.witnessed_empty_fetches import EmptyFetchWitness
from harness.cluster.observe.witnessed_epochs import EpochWitness
from harness.cluster.observe.witnessed_fetches import FetchWitness
from harness.cluster.observe.witnessed_logs import LogWitness
from harness.cluster.observe.witnessed_members import MemberWitness
from harness.cluster.observe.witnessed_offsets import OffsetWitness
from harness.cluster.observe.witnessed_placements import PlacementWitness
from harness.cluster.observe.witnessed_settings import SettingsWitness
from harness.cluster.observe.witnessed_sizes import SizeWitness
from harness.cluster.observe.witnessed_timeouts import TimeoutWitness
from harness.cluster.observe.witnessed_transactions import OpenTransactions, TransactionWitness
from harness.simulation.disk import SimDisk
from harness.simulation.world import World
from model import roles
from model.plan import Plan
from model.roles import NodeId
from model.violation import Violation, Watched, encode

INTERVAL_S: Final = 0.02
"""The least virtual time between two snapshots; each is taken in the first idle moment after it."""
PRODUCERS_EVERY: Final = 100
"""One snapshot out of this many contains the producer state of the logs."""
CLOCK_FAULTS: Final = frozenset({"clock-jump", "clock-skew"})
"""The faults that make the wall clock of a broker wrong."""
RECOVERY_S: Final = 60.0
"""The cluster must have recovered this long after the last heal."""


def rules_of(plan: Plan) -> Rules:
    """Return the parameters of the invariants for the settings of this plan.

    ``isr_min`` is set because this project's brokers do not advance the high watermark while the
    ISR is smaller than min.insync.replicas (KIP-966).
    """
    expiration_ms = plan.broker.get("producer.id.expiration.ms")
    return Rules(
        unclean_elections=Contract.of(plan).unclean_elections,
        isr_min=settings.min_isr(plan.brokers, plan.broker),
        isr_min_of={"__transaction_state": settings.transaction_min_isr(plan.broker)},
        producer_expiration_s=7 * 86_400.0 if expiration_ms is None else int(expiration_ms) / 1000,
        recovery_s=RECOVERY_S,
        lag_max_s=settings.lag_max_s(plan.broker),
        steady_clocks=CLOCK_FAULTS.isdisjoint(fault.fault for fault in plan.schedule or ()),
    )


class Watcher:
    """Takes snapshots of a simulated cluster until ``end`` is called, and checks each of them."""

    def __init__(
        self,
        world: World,
        rules: Rules,
        record: Callable[[bytes], object],
        *,
        now_s: Callable[[], float],
        calm_since_ns: Callable[[], int | None] = lambda: None,
        interval_s: float = INTERVAL_S,
    ) -> None:
        """``record`` is called with each line to store; ``now_s`` returns the history's time.

        ``calm_since_ns`` returns when the cluster began to recover, in the history's time, after
        the last fault was healed; None before that.
        """
        self.snapshots = Snapshots()
        self.answers = Answers()
        self._producers = Producers()
        self._transactions = OpenTransactions()
        self._offsets = CommittedOffsets()
        self._commits = Commits()
        self._members = StoredMembers()
        self._running: Running = {}
        self._times = TransactionTimes()
        self._settings = KeptSettings()
        self._world = world
        self._logs: dict[int, ReopenedLogs] = {}
        self._histories: dict[int, tuple[ReopenedHistory, Callable[[], bool]]] = {}
        self._coordinators: dict[int, ReloadedCoordinators] = {}
        self._watch = Watch(rules, self._reload, self._reload_histories)
        self._keeps = not rules.unclean_elections
        self._is_steady = rules.steady_clocks
        self._in_sequence = not rules.forgets_producers
        self._record = record
        self._interval_s = interval_s
        self._now_s = now_s
        self._calm_since_ns = calm_since_ns
        self._count = 0
        self._epochs: set[int] = set()
        """The epochs in which a server of an ensemble has served as the leader."""
        self._is_over = False
        self._due_s = world.now
        world.on_idle = self._turn

    def _turn(self) -> None:
        now_s = self._world.now
        if now_s >= self._due_s and not self._is_over:
            self._due_s = now_s + self._interval_s
            self.look(producers=self._count % PRODUCERS_EVERY == 0)

    def look(self, *, producers: bool = False, is_last: bool = False) -> None:
        """Take and check a snapshot now; it may be called outside of processes or inside one."""
        self._count += 1
        self.snapshots.calm_since_ns = self._calm_since_ns()
        state = self.snapshots.take(self._time_ns(), producers=producers)
        if state.ensemble is not None:
            self._epochs.update(state.ensemble.epochs_led())
        for violation in self._watch.step(state, is_last=is_last):
            self._record(encode(violation))
        settings = {} if state.zookeeper is None else state.zookeeper.settings
        for topic, why in self._settings.lost(settings):
            self._found("settings-kept", (), f"topic {topic}: {why}", key=f"{topic}-0")
        if producers:
            for number in sorted(state.brokers.keys() & self._coordinators.keys()):
                self._judge_coordinators(number, is_last=is_last)

    def _judge_coordinators(self, number: int, *, is_last: bool) -> None:
        for difference in self._coordinators[number].differences(is_last=is_last):
            self._found_stored(number, difference)

    def groups_loaded(self, number: int, tp: TopicPartition) -> None:
        """Compare the groups that a coordinator has just loaded with its log."""
        difference = self._coordinators[number].of_loaded_groups(tp)
        if difference is not None:
            self._found_stored(number, difference)

    def _found_stored(self, number: int, difference: Difference) -> None:
        where = f"broker {number}, {difference.about}: {difference.why}"
        self._found("coordinated-as-stored", (number,), where, key=difference.key)

    def _reload(self, number: int, key: str) -> Known | None:
        logs = self._logs.get(number)
        return None if logs is None else logs.known(key)

    def _reload_histories(self) -> dict[int, HeldHistory]:
        return {
            server: history.held()
            for server, (history, is_alive) in sorted(self._histories.items())
            if is_alive()
        }

    def server_started(
        self, server: int, history: History, disk: SimDisk, is_alive: Callable[[], bool]
    ) -> None:
        """Register a new life of a ZooKeeper server, whose history is judged while ``is_alive``."""
        self._histories[server] = ReopenedHistory(history, disk), is_alive

    def witness(
        self,
        number: int,
        broker: Broker,
        disk: SimDisk,
        racks: Mapping[int, str],
    ) -> Witness:
        """Return the witness of the answers of a broker that has just started.

        ``disk`` has its files; ``racks`` has the racks of all brokers.
        """

        def replicas() -> Replicas:
            return broker.replicas

        directories = broker.config.log_directories()
        self._logs[number] = ReopenedLogs(lambda: replicas().logs.logs, directories, disk)
        peek = peeking(disk, directories)
        self._coordinators[number] = ReloadedCoordinators(broker, peek, is_steady=self._is_steady)
        life = self.snapshots.life_of(number)
        to = Reporter(number, self._time_ns, self._report)
        keeps, in_sequence = self._keeps, self._in_sequence
        others: list[See] = [
            LogWitness(to, replicas, peek, racks, in_sequence=in_sequence, keeps=keeps),
            CoordinatorWitness(to, broker, self._producers),
            TransactionWitness(to, broker, self._transactions, keeps=keeps),
            OffsetWitness(to, broker, self._offsets),
            FetchWitness(to, broker, self._commits),
            EpochWitness(to, replicas),
            MemberWitness(to, broker, self._members),
            EmptyFetchWitness(to, broker, peek),
            SettingsWitness(self._settings),
            SizeWitness(to, broker.config.fetch_max_bytes),
            PlacementWitness(to, lambda: broker.controller.cluster),
            DeletionWitness(to, replicas, self._running),
            TimeoutWitness(to, broker, self._times, is_steady=self._is_steady),
        ]
        return Witness(to, life, replicas, self.answers, others=others)

    def unexpected_error(self, node: NodeId, why: str) -> None:
        """Record that a node has logged an exception, and runs on."""
        number = roles.number(node)
        brokers = (number,) if node == roles.broker(number) else ()
        self._found("unexpected-error", brokers, f"{node}: {why}")

    def leaked(self, broker: int, key: str, offset: int, why: str) -> None:
        """Record that a broker returned records to a client that had no right to read them."""
        self._found("leaked", (broker,), why, key=key, offset=offset)

    def answered_out_of_order(self, broker: int, why: str) -> None:
        """Record that a broker answered the requests of a connection in another order."""
        self._found("answered-in-order", (broker,), f"broker {broker}, {why}")

    def wrong_password_accepted(self, broker: int, why: str) -> None:
        """Record that a broker authenticated a client by a wrong password."""
        self._found("wrong-password-accepted", (broker,), why)

    def expired_login_served(self, broker: int, why: str) -> None:
        """Record that a broker answered a client whose authentication had expired."""
        self._found("expired-login-served", (broker,), why)

    def _found(
        self,
        invariant: str,
        brokers: tuple[int, ...],
        why: str,
        *,
        key: str | None = None,
        offset: int | None = None,
    ) -> None:
        self._report(
            Violation(
                invariant=invariant,
                time_ns=self._time_ns(),
                key=key,
                offset=offset,
                brokers=brokers,
                why=why,
            )
        )

    def _report(self, violation: Violation) -> None:
        """Record a violation in a response, once for each invariant and partition."""
        trusts = all(self.snapshots.trusts(broker) for broker in violation.brokers)
        if trusts and not self._is_over and self._watch.is_new(violation):
            self._record(encode(violation))

    def is_settled(self) -> bool:
        """Take a snapshot; return False while the cluster must still recover from the last fault.

        Return True if the cluster has recovered, if its time limit for recovery has expired, or if
        that time has not begun because faults are active or planned.
        """
        if not self._is_over:
            self.look()
        return self._is_over or not self._watch.is_pending

    def end(self) -> None:
        """Take the last snapshot, and record the number of snapshots."""
        if not self._is_over:
            self.look(producers=True, is_last=True)
            self._is_over = True
            end = Watched(
                snapshots=self._count,
                until_ns=self._time_ns(),
                zookeeper_leaders=len(self._epochs),
            )
            self._record(encode(end))

    def _time_ns(self) -> int:
        return int(self._now_s() * 1e9)
