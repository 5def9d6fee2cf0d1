import struct

import pytest

from broker_impl.errors import ErrorCode
from broker_impl.log.config import LogConfig
from broker_impl.replica.events import (
    HighWatermarkAdvanced,
    HighWatermarkLearnt,
    LeadershipTaken,
    LogEndAdvanced,
    LogStartAdvanced,
    RefreshIsr,
    WriteIsr,
)
from broker_impl.replica.fetch_targets import FetchTarget
from broker_impl.replica.replica_state import Stage
from broker_impl.replica.results import EARLIEST, LATEST, MAX_TIMESTAMP
from broker_impl.wire import batch
from tests.broker_impl.replica.conftest import NONE, OTHER, TP, Broker


def test_watermarks_of_logs_that_nobody_called_yet_are_kept() -> None:
    """KAFKA-769: the checkpoint keeps watermarks of logs that the controller has not named yet."""
    before = Broker()
    before.order(isr=(1,), replicas=(1,), tps=(TP, OTHER))
    before.append(3)
    before.append(2, OTHER)
    assert before.replicas.high_watermarks() == {TP: 3, OTHER: 2}
    before.logs.checkpoint(before.replicas.high_watermarks())
    before.disk.kill()
    broker = Broker(before.disk)
    broker.order(2, epoch=1)
    assert broker.replicas.high_watermarks() == {TP: 3, OTHER: 2}


def test_what_is_not_here(broker: Broker) -> None:
    """Every request for a partition that is not hosted gets UNKNOWN_TOPIC_OR_PARTITION."""
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    replicas = broker.replicas
    assert replicas.append(TP, b"", acks=1).error is unknown
    assert replicas.fetch(TP, replica_id=-1, offset=0, bytes_max=1).error is unknown
    assert replicas.list_offset(TP, timestamp=-1).error is unknown
    assert replicas.end_offset_for_epoch(TP, 0, 0) == (unknown, -1, -1)


def test_effects_are_passed_on(broker: Broker) -> None:
    """The result of an append is returned, and its other effects are passed to the node."""
    broker.order(isr=(1,), replicas=(1,))
    broker.append(2)
    assert broker.effects == [
        LeadershipTaken(TP, 0),
        LogEndAdvanced(TP, 2),
        HighWatermarkAdvanced(TP, 2),
    ]


@pytest.mark.parametrize(
    ("replica_id", "epoch", "error"),
    [
        (-1, 3, ErrorCode.FENCED_LEADER_EPOCH),
        (-1, 5, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (-1, -1, NONE),
        (-1, 4, NONE),
        (2, 3, ErrorCode.FENCED_LEADER_EPOCH),
        (2, 5, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (2, -1, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        (2, 4, NONE),
        (7, 4, ErrorCode.UNKNOWN_LEADER_EPOCH),
        (-2, 4, NONE),
    ],
)
def test_fetch_is_fenced(broker: Broker, replica_id: int, epoch: int, error: ErrorCode) -> None:
    """KIP-320: a fetch is fenced by its leader epoch, which a follower must name.

    An unknown follower may retry.
    """
    broker.order(epoch=4)
    broker.append(2)
    result = broker.replicas.fetch(
        TP, replica_id=replica_id, offset=0, bytes_max=1000, current_leader_epoch=epoch
    )
    assert result.error is error
    if error is not NONE:
        assert result.high_watermark == -1
        assert broker.replicas.partitions[TP].remotes[2].log_end == -1


def test_a_follower_is_not_read_from(broker: Broker) -> None:
    """A follower refuses fetches, look-ups and appends with NOT_LEADER_OR_FOLLOWER."""
    broker.order(2)
    no_leader = ErrorCode.NOT_LEADER_OR_FOLLOWER
    replicas = broker.replicas
    assert replicas.fetch(TP, replica_id=-1, offset=0, bytes_max=1).error is no_leader
    assert replicas.list_offset(TP, timestamp=-2).error is no_leader
    assert replicas.end_offset_for_epoch(TP, 0, 0) == (no_leader, -1, -1)
    assert replicas.append(TP, b"", acks=1).error is no_leader


def offsets(broker: Broker, replica_id: int, offset: int = 0) -> list[int]:
    result = broker.replicas.fetch(
        TP, replica_id=replica_id, offset=offset, bytes_max=1000, current_leader_epoch=0
    )
    return [r.offset for data in result.records for r in batch.records(data)]


def test_who_may_read_how_far(broker: Broker) -> None:
    """Rule R10: consumers read to the high watermark, replicas and debug tools to the log end."""
    broker.order()
    broker.append()
    broker.append()
    assert offsets(broker, -1) == []
    assert offsets(broker, 2) == [0, 1]
    assert offsets(broker, -2) == [0, 1]
    assert offsets(broker, 2, 1) == [1]
    assert offsets(broker, -1) == [0]


def test_a_followers_fetch_tells_what_it_holds(broker: Broker) -> None:
    """A follower's fetch reports its log end, and its response has the updated watermark.

    The same watermark counts as news once.
    """
    broker.order()
    broker.append(2)

    def fetch(offset: int, *, again: bool = False) -> tuple[int, bool]:
        result = broker.replicas.fetch(
            TP,
            replica_id=2,
            offset=offset,
            bytes_max=1000,
            current_leader_epoch=0,
            last_fetched_epoch=0 if offset else -1,
            again=again,
        )
        assert result.error is NONE
        return result.high_watermark, result.news

    assert fetch(0) == (0, True)
    assert fetch(2, again=True) == (0, False), "tried again, it says nothing about the follower"
    assert fetch(2) == (2, True)
    assert fetch(2) == (2, False)
    broker.append(1)
    assert fetch(2, again=True) == (2, False)
    assert broker.last_effect() == LogEndAdvanced(TP, 3)


@pytest.mark.parametrize(("offset", "last_epoch"), [(9, -1), (9, 0), (2, 7)])
def test_a_fetch_that_failed_or_diverged_tells_nothing(
    broker: Broker, offset: int, last_epoch: int
) -> None:
    """KAFKA-8400, KAFKA-13141: a fetch that fails or diverges reports no log end."""
    broker.order()
    broker.append(3)
    broker.replicas.fetch(
        TP,
        replica_id=2,
        offset=offset,
        bytes_max=1000,
        current_leader_epoch=0,
        last_fetched_epoch=last_epoch,
    )
    assert broker.replicas.partitions[TP].remotes[2].log_end == -1
    assert broker.high_watermark() == 0


@pytest.mark.parametrize(
    ("live", "broker_epoch", "joins"),
    [({2: 12}, 12, True), ({2: 12}, 11, False), ({3: 13}, 12, False), ({2: 12}, -1, True)],
)
def test_only_the_living_incarnation_joins_the_isr(
    broker: Broker, live: dict[int, int], broker_epoch: int, joins: bool
) -> None:
    """KIP-841, KIP-903: a fetch from before a restart, or of a dead broker, joins no ISR."""
    broker.order(isr=(1,))
    broker.replicas.on_metadata_live_brokers(live)
    broker.replicas.fetch(
        TP,
        replica_id=2,
        offset=0,
        bytes_max=1000,
        current_leader_epoch=0,
        broker_epoch=broker_epoch,
    )
    written = [WriteIsr(TP, 1, 0, (1, 2), 1, 0)] if joins else []
    assert broker.effects == [LeadershipTaken(TP, 0), *written]


def test_settings_can_change(broker: Broker) -> None:
    """A change of a topic's min.insync.replicas applies to its partitions."""
    broker.isr_min = 2
    broker.order(isr=(1,))
    broker.append()
    assert broker.high_watermark() == 0
    broker.isr_min = 1
    broker.replicas.configured("another")
    assert broker.high_watermark() == 0
    broker.replicas.configured("t")
    assert broker.high_watermark() == 1


def test_offsets_and_epochs(broker: Broker) -> None:
    """ListOffsets and OffsetForLeaderEpoch are fenced by the leader epoch."""
    broker.order(isr=(1,), replicas=(1,))
    broker.append(3)
    broker.order(epoch=2, isr=(1,), replicas=(1,))
    replicas = broker.replicas
    assert replicas.list_offset(TP, timestamp=-1, current_leader_epoch=2).offset == 3
    found = replicas.list_offset(TP, timestamp=7)
    assert (found.offset, found.timestamp, found.leader_epoch) == (0, 7, 0)
    fenced = ErrorCode.FENCED_LEADER_EPOCH
    assert replicas.list_offset(TP, timestamp=-1, current_leader_epoch=1).error is fenced
    assert replicas.end_offset_for_epoch(TP, 0, 2) == (NONE, 0, 3)
    assert replicas.end_offset_for_epoch(TP, 2, 2) == (NONE, 2, 3)
    assert replicas.end_offset_for_epoch(TP, 3, 2) == (NONE, -1, -1)
    assert replicas.end_offset_for_epoch(TP, 0, 1) == (fenced, -1, -1)


def test_a_time_in_a_batch_that_cannot_be_decoded(broker: Broker) -> None:
    """A search that must decode such a batch is an error of this partition, and no exception.

    Other searches are answered: of the ends, of later times, and in other partitions.
    """
    broker.order(isr=(1,), replicas=(1,), tps=(TP, OTHER))
    broker.append(1, OTHER)
    good = batch.encode_batch([batch.Record(value=b"v", timestamp_ms=7)])
    head, rest = bytearray(good[: batch.HEADER_BYTES]), b"\xff" * 20
    struct.pack_into(">i", head, 8, len(head) + len(rest) - 12)
    batch.set_max_timestamp(head, rest, 7)
    replicas = broker.replicas
    assert replicas.append(TP, bytes(head) + rest, acks=1).error is NONE, "its checksum is right"
    for timestamp in (7, MAX_TIMESTAMP):
        found = replicas.list_offset(TP, timestamp=timestamp)
        assert (found.error, found.offset) == (ErrorCode.CORRUPT_MESSAGE, -1)
        assert replicas.list_offset(OTHER, timestamp=timestamp).offset == 0
    assert replicas.list_offset(TP, timestamp=EARLIEST).offset == 0
    assert replicas.list_offset(TP, timestamp=LATEST).offset == 1
    assert replicas.list_offset(TP, timestamp=8).error is NONE


def fetched(broker: Broker, count: int, base: int, epoch: int, high_watermark: int) -> None:
    (target,) = broker.targets()
    data = batch.encode_batch(
        [batch.Record(value=b"v")] * count, base_offset=base, leader_epoch=epoch
    )
    broker.replicas.fetched(
        target, NONE, records=data, high_watermark=high_watermark, log_start_offset=0
    )


def test_a_followers_life(broker: Broker) -> None:
    """A follower fetches; in a new epoch it asks for the last epoch's end, and truncates."""
    broker.order(2)
    fetched(broker, 4, 0, 0, 3)
    assert (broker.end(), broker.high_watermark()) == (4, 3)
    assert broker.targets() == [FetchTarget(TP, Stage.FETCH, 0, 4, 0, 0)]
    broker.order(2, epoch=5)
    (target,) = broker.targets()
    assert target == FetchTarget(TP, Stage.EPOCH_END, 5, 4, 0, 0)
    broker.replicas.epoch_end_answered(target, NONE, 0, 4)
    (target,) = broker.targets()
    assert target.stage is Stage.FETCH
    broker.replicas.fetched(target, NONE, diverging=(0, 0))
    assert broker.end() == 0
    fetched(broker, 3, 0, 1, 3)
    assert broker.targets() == [FetchTarget(TP, Stage.FETCH, 5, 3, 1, 0)]
    assert broker.high_watermark() == 3


@pytest.mark.parametrize(
    ("high_watermark", "log_start", "changes"),
    [(3, 0, False), (2, 0, True), (4, 0, True), (9, 0, True), (3, 1, True), (0, 0, True)],
)
def test_an_answer_without_records_counts_where_it_says_something_new(
    broker: Broker, high_watermark: int, log_start: int, changes: bool
) -> None:
    """A response without records applies a changed watermark or log start, up to the log's end.

    The watermark may go back (R4).
    """
    broker.order(2)
    fetched(broker, 4, 0, 0, 3)
    log = broker.logs.logs[TP]
    before = broker.high_watermark(), log.start_offset
    (target,) = broker.targets()
    broker.effects.clear()
    broker.replicas.fetched(target, NONE, high_watermark=high_watermark, log_start_offset=log_start)
    expected = (min(high_watermark, 4), log_start) if changes else before
    assert (broker.high_watermark(), log.start_offset) == expected
    assert bool(broker.effects) == changes


def test_a_leader_hears_of_a_follower_that_is_idle(broker: Broker) -> None:
    """An idle follower that fetches stays in the ISR, and the next record is committed."""
    broker.order(1, isr=(1, 2))
    broker.append(1)
    for _ in range(5):
        broker.now += 7.5
        broker.replicas.fetch(TP, replica_id=2, offset=1, bytes_max=99, current_leader_epoch=0)
        broker.replicas.tick()
    assert not [effect for effect in broker.effects if isinstance(effect, WriteIsr)]
    broker.append(1)
    assert broker.high_watermark() == 1
    broker.replicas.fetch(TP, replica_id=2, offset=2, bytes_max=99, current_leader_epoch=0)
    assert broker.high_watermark() == 2


def test_the_isr_changes_by_way_of_the_znode(broker: Broker) -> None:
    """A leader writes the ISR to the znode, and reads the znode again after a refusal.

    Only leaders check the time.
    """
    broker.order()
    broker.order(2, tps=(OTHER,))
    broker.append()
    broker.now += 11
    broker.replicas.tick()
    assert broker.last_effect() == WriteIsr(TP, 1, 0, (1,), 1, 0)
    broker.replicas.isr_write_refused(TP)
    assert broker.last_effect() == RefreshIsr(TP)
    broker.replicas.isr_refreshed(TP, leader=1, leader_epoch=0, isr=(1, 2), zk_version=3)
    broker.replicas.tick()
    assert broker.last_effect() == WriteIsr(TP, 1, 0, (1,), 1, 3)
    broker.replicas.isr_written(TP, 4)
    assert broker.replicas.partitions[TP].isr == {1}
    assert broker.high_watermark() == 1
    assert [(shot.partition, shot.role, shot.isr) for shot in broker.replicas.snapshot()] == [
        (0, "leader", (1,)),
        (1, "follower", ()),
    ]


def fetch(broker: Broker, replica_id: int, offset: int, *, log_start: int) -> None:
    broker.replicas.fetch(
        TP,
        replica_id=replica_id,
        offset=offset,
        bytes_max=1000,
        current_leader_epoch=0,
        log_start_offset=log_start,
    )


@pytest.mark.parametrize(
    ("offset", "start"), [(0, 0), (2, 2), (3, 3), (-1, 3), (4, None), (-2, None)]
)
def test_only_what_is_committed_is_deleted(broker: Broker, offset: int, start: int | None) -> None:
    """KIP-107: records are deleted up to the high watermark at most, which -1 stands for."""
    broker.order()
    broker.append(3)
    fetch(broker, 2, 3, log_start=0)
    broker.append()
    assert (broker.high_watermark(), broker.end()) == (3, 4)
    deletion = broker.replicas.delete_records(TP, offset)
    assert deletion.error is (NONE if start is not None else ErrorCode.OFFSET_OUT_OF_RANGE)
    assert broker.logs.logs[TP].start_offset == (start or 0)


def test_a_deletion_is_over_when_all_live_replicas_have_it(broker: Broker) -> None:
    """DeleteRecords completes when all live replicas have the new log start.

    Each follower's fetch reports its log start; dead replicas are not waited for.
    """
    broker.order(replicas=(1, 2, 3), isr=(1, 2, 3))
    broker.append(3)
    for follower in (2, 3):
        fetch(broker, follower, 3, log_start=0)
    deletion = broker.replicas.delete_records(TP, 2)
    assert broker.last_effect() == LogStartAdvanced(TP)
    assert broker.replicas.deleted(TP, deletion) is None
    fetch(broker, 2, 3, log_start=2)
    assert broker.last_effect() == LogStartAdvanced(TP)
    assert broker.replicas.deleted(TP, deletion) is None
    broker.replicas.on_metadata_live_brokers({1: 11, 2: 12})
    assert broker.replicas.deleted(TP, deletion) == (NONE, 2)
    broker.order(2, epoch=1)
    assert broker.replicas.deleted(TP, deletion) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, -1)


def test_who_may_not_delete(broker: Broker) -> None:
    """DeleteRecords is refused by a follower, for an unknown partition, and for a compacted log."""
    assert broker.replicas.delete_records(TP, 0).error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    broker.order(2)
    assert broker.replicas.delete_records(TP, 0).error is ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker.order(1, epoch=1)
    broker.logs.logs[TP].config = LogConfig(cleanup_policy=("compact",))
    assert broker.replicas.delete_records(TP, 0).error is ErrorCode.POLICY_VIOLATION


def test_a_follower_begins_where_its_leader_does(broker: Broker) -> None:
    """A follower advances its log start to the leader's, up to its own watermark."""
    broker.order(2)
    (target,) = broker.targets()
    data = batch.encode_batch([batch.Record(value=b"v")] * 3, leader_epoch=0)
    broker.replicas.fetched(
        target, NONE, records=data, high_watermark=2, log_start_offset=3, diverging=None
    )
    assert broker.logs.logs[TP].start_offset == 2
    assert broker.last_effect() == LogStartAdvanced(TP)


def test_a_follower_serves_what_it_knows_to_be_committed(broker: Broker) -> None:
    """A follower serves consumers that support KIP-392 up to its watermark.

    A stopped replica refuses them.
    """
    broker.order(2)
    (target,) = broker.targets()
    data = b"".join(
        batch.encode_batch([batch.Record(value=b"v")], base_offset=at, leader_epoch=0)
        for at in range(3)
    )
    broker.replicas.fetched(
        target, NONE, records=data, high_watermark=2, log_start_offset=0, diverging=None
    )
    assert broker.last_effect() == HighWatermarkLearnt(TP)
    result = broker.replicas.fetch(TP, replica_id=-1, offset=0, bytes_max=1000, from_follower=True)
    assert (result.error, result.high_watermark) == (NONE, 2)
    assert [r.offset for data in result.records for r in batch.records(data)] == [0, 1]
    stale = broker.replicas.fetch(
        TP, replica_id=-1, offset=0, bytes_max=1, from_follower=True, current_leader_epoch=9
    )
    assert stale.error is ErrorCode.UNKNOWN_LEADER_EPOCH
    broker.stop(epoch=1, delete=False)
    stopped = broker.replicas.fetch(TP, replica_id=-1, offset=0, bytes_max=1, from_follower=True)
    assert stopped.error is ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_a_leader_sends_readers_to_their_rack(broker: Broker) -> None:
    """A leader sends a reader to a live in-sync replica in the reader's rack."""
    broker.order()
    broker.append()
    fetch(broker, 2, 1, log_start=0)
    racks = {1: "a", 2: "b"}
    replicas = broker.replicas
    assert replicas.preferred_read_replica(TP, 0, "b", racks) == 2
    assert replicas.preferred_read_replica(TP, 0, "a", racks) is None
    assert replicas.preferred_read_replica(TP, 0, "b", {1: "a"}) is None
    assert replicas.preferred_read_replica(OTHER, 0, "b", racks) is None
    broker.order(2, epoch=1)
    assert replicas.preferred_read_replica(TP, 0, "b", racks) is None
