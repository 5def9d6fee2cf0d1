"""Measures coordinators with librdkafka: transactions, the rebalance of a group, and a failover."""

import threading
import time
from collections.abc import Callable

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer

from bench.librdkafka import TIMEOUT_S, Failed

RECORDS = 10
"""The number of records in one transaction."""
VALUE = b"x" * 100
LOOK_MS = 200
"""How often a producer refreshes its metadata, and how long it waits at most to reconnect."""
HEARTBEAT_MS = 100
"""The heartbeat interval: a member learns from a heartbeat's response that another has joined."""
_RETRY_S = 0.1
_POLL_S = 0.1


def producer(address: str, name: str) -> Producer:
    """Create a producer with this transactional id, ready for its first transaction."""
    made = Producer(
        {
            "bootstrap.servers": address,
            "transactional.id": name,
            "linger.ms": 0,
            "topic.metadata.refresh.interval.ms": LOOK_MS,
            "reconnect.backoff.max.ms": LOOK_MS,
            "log_level": 2,  # the loss of a broker is intended
        }
    )
    made.init_transactions(TIMEOUT_S)
    return made


def transactions(made: Producer, topic: str, *, count: int, partitions: int) -> float:
    """Return the seconds for this many transactions, one after another."""
    begun = time.perf_counter()
    for _ in range(count):
        _transact(made, topic, partitions)
    return time.perf_counter() - begun


def _transact(made: Producer, topic: str, partitions: int) -> None:
    made.begin_transaction()
    for number in range(RECORDS):
        made.produce(topic, VALUE, partition=number % partitions)
    made.commit_transaction(TIMEOUT_S)


def failover(made: Producer, topic: str, kill: Callable[[], None], *, partitions: int) -> float:
    """Return the seconds from the kill of a broker to the next acknowledged transaction."""
    _transact(made, topic, partitions)
    kill()
    begun = time.perf_counter()
    has_failed = False
    while time.perf_counter() - begun < TIMEOUT_S:
        try:
            if has_failed:
                made.abort_transaction(TIMEOUT_S)
                has_failed = False
            _transact(made, topic, partitions)
            return time.perf_counter() - begun
        except KafkaException as failed:
            error: KafkaError = failed.args[0]
            if error.fatal():
                raise
            has_failed = has_failed or error.txn_requires_abort()
            time.sleep(_RETRY_S)
    raise Failed(f"no transaction was acknowledged within {TIMEOUT_S:.0f} s")


def rebalance(address: str, topic: str, *, members: int, partitions: int) -> float:
    """Return the seconds from the last member's join until each member has its share of partitions.

    The other members have joined before, and share all partitions.
    """
    group = _Group(address, topic, partitions)
    try:
        for number in range(members - 1):
            group.join()
            group.wait(number + 1)
        begun = time.perf_counter()
        group.join()
        group.wait(members)
        return time.perf_counter() - begun
    finally:
        group.end()


class _Group:
    """The members of a group, each polled by its own thread."""

    def __init__(self, address: str, topic: str, partitions: int) -> None:
        self._settings = {
            "bootstrap.servers": address,
            "group.id": f"{topic}-{time.monotonic_ns()}",
            "auto.offset.reset": "latest",
            "enable.auto.commit": False,
            "heartbeat.interval.ms": HEARTBEAT_MS,
        }
        self._topic = topic
        self._partitions = partitions
        self._shares: dict[int, int] = {}
        """By member: the number of partitions that it owns."""
        self._changed = threading.Condition()
        self._is_over = threading.Event()
        self._threads: list[threading.Thread] = []

    def join(self) -> None:
        thread = threading.Thread(target=self._poll, args=(len(self._threads),))
        self._threads.append(thread)
        thread.start()

    def wait(self, members: int) -> None:
        """Wait until all partitions are shared evenly among this many members."""
        least = self._partitions // members

        def is_shared() -> bool:
            shares = list(self._shares.values())
            evenly = len(shares) == members and min(shares) >= least
            return evenly and sum(shares) == self._partitions

        with self._changed:
            if not self._changed.wait_for(is_shared, TIMEOUT_S):
                raise Failed(f"{members} members own {self._shares}")

    def end(self) -> None:
        self._is_over.set()
        for thread in self._threads:
            thread.join()

    def _poll(self, number: int) -> None:
        consumer = Consumer(self._settings)

        def own(count: int) -> None:
            with self._changed:
                self._shares[number] = count
                self._changed.notify_all()

        consumer.subscribe(
            [self._topic],
            on_assign=lambda _, given: own(len(given)),
            on_revoke=lambda _, taken: own(0),
        )
        while not self._is_over.is_set():
            consumer.poll(_POLL_S)
        consumer.close()
