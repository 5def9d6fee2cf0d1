"""Carries out the effects of replicas: parked requests, coordinators, ISR writes, fetchers.

Parked requests are tried again one turn of the event loop later, so that no handler runs inside the
event of another.
"""

import asyncio
from dataclasses import dataclass, field
from typing import assert_never

from broker_impl.api.fetch_sessions.cache import FetchSessions
from broker_impl.api.purgatory import Waiting
from broker_impl.coordinator import records, transaction_records
from broker_impl.counts import Counts
from broker_impl.log.manager import LogManager
from broker_impl.node.coordinators.group_coordinator import GroupsRuntime
from broker_impl.node.coordinators.transaction_coordinator import Transactions
from broker_impl.node.fetcher import Fetchers
from broker_impl.node.isr_writer import IsrWriter
from broker_impl.replica import events
from broker_impl.replica.events import (
    AppendDone,
    Effect,
    HighWatermarkAdvanced,
    HighWatermarkLearnt,
    IsrChanged,
    LeadershipLost,
    LeadershipTaken,
    LogEndAdvanced,
    LogStartAdvanced,
    RefreshIsr,
    StartFetching,
    StopFetching,
    WriteIsr,
)
from broker_impl.wire.types import TopicPartition


@dataclass(slots=True)
class Effects:
    """The parts of a broker that the effects of its replicas concern."""

    waiting: Waiting
    sessions: FetchSessions
    logs: LogManager
    groups: GroupsRuntime
    transactions: Transactions
    isr_writer: IsrWriter
    fetchers: Fetchers
    counts: Counts
    _moved: dict[TopicPartition, None] = field(default_factory=dict)

    def carry_out(self, effect: Effect) -> None:
        """Carry out one effect."""
        changed = events.changes_reads_of(effect)
        if changed is not None:
            self.sessions.changed(changed)
        match effect:
            case LogEndAdvanced(tp) | HighWatermarkAdvanced(tp):
                self._retry_soon(tp)
            case HighWatermarkLearnt(tp):
                if tp in self.waiting:  # most followers have no readers
                    self._retry_soon(tp)
            case LogStartAdvanced(tp):
                self.logs.write_starts(tp)  # before any response reports it: it must not move back
                self._retry_soon(tp)
            case LeadershipTaken(tp, leader_epoch):
                self._led(tp, leader_epoch)
            case LeadershipLost(tp):
                self._retry_soon(tp)
                self._no_longer_led(tp)
            case WriteIsr():
                self.isr_writer.write(effect)
            case RefreshIsr():
                self.isr_writer.refresh(effect)
            case IsrChanged(tp, before, after):
                self.counts.isr_changed(before, after)
                self.isr_writer.announce(tp)
                self._retry_soon(tp)
            case StartFetching() | StopFetching():
                self.fetchers.wake_soon()
            case AppendDone():
                pass
            case _:
                assert_never(effect)

    def session_ended(self, number: int) -> None:
        """Have the fetches that wait in a session fail soon, because it has ended."""
        asyncio.get_running_loop().call_soon(self.waiting.retry, number)

    def _led(self, tp: TopicPartition, leader_epoch: int) -> None:
        if tp.topic == transaction_records.TOPIC:
            self.transactions.led(tp, leader_epoch)
        elif tp.topic == records.TOPIC:
            self.groups.taken(tp, leader_epoch)

    def _no_longer_led(self, tp: TopicPartition) -> None:
        if tp.topic == transaction_records.TOPIC:
            self.transactions.lost(tp)
        elif tp.topic == records.TOPIC:
            self.groups.lost(tp)

    def _retry_soon(self, tp: TopicPartition) -> None:
        """Try parked requests again once the current event is handled."""
        if not self._moved:
            asyncio.get_running_loop().call_soon(self._retry)
        self._moved[tp] = None

    def _retry(self) -> None:
        moved, self._moved = self._moved, {}
        self.waiting.notify(*moved)
