from broker_impl.errors import ErrorCode
from broker_impl.replica import segment_listing
from broker_impl.replica.results import EARLIEST, LATEST
from broker_impl.wire.types import TopicPartition
from tests.broker_impl.replica.conftest import NONE, TP, Broker

CONSUMER, DEBUGGER = -1, -2
NEVER, ALWAYS = 1233, 1234
"""Times before and at that of the test's clock."""


def listed(broker: Broker, timestamp: int, count: int = 9, reader: int = CONSUMER) -> object:
    """The answer about the partition."""
    return segment_listing.listed(broker.replicas, TP, timestamp, count, reader)


def test_the_ends_of_a_log_are_listed(broker: Broker) -> None:
    """EARLIEST is the start of the log, LATEST its end with the segments below, up to a count."""
    assert broker.order(isr=(1,), replicas=(1,)) == [NONE]
    broker.append(3)
    assert listed(broker, EARLIEST) == [0]
    assert listed(broker, LATEST) == [3, 0]
    assert listed(broker, LATEST, 1) == [3]
    assert listed(broker, LATEST, 0) == listed(broker, LATEST, -1) == []
    assert broker.replicas.partitions[TP].exposed == 3


def test_a_time_selects_segments(broker: Broker) -> None:
    """Only segments that were written at the time or before are listed."""
    assert broker.order(isr=(1,), replicas=(1,)) == [NONE]
    broker.append(3)
    assert listed(broker, ALWAYS) == [3, 0]
    assert listed(broker, NEVER) == []


def test_a_consumer_sees_the_high_watermark(broker: Broker) -> None:
    """Offsets above the high watermark are replaced by it for consumers, and only for them."""
    assert broker.order() == [NONE]
    broker.append(3)
    assert listed(broker, LATEST) == [0, 0]
    assert listed(broker, LATEST, reader=DEBUGGER) == [3, 0]


def test_the_end_waits_for_the_new_leader(broker: Broker) -> None:
    """A leader whose watermark is below its epoch's start does not list an end (KIP-207)."""
    assert broker.order() == [NONE]
    broker.append(3)
    assert broker.order(epoch=1) == [NONE]
    assert listed(broker, LATEST) is ErrorCode.OFFSET_NOT_AVAILABLE
    assert listed(broker, EARLIEST) == [0]


def test_only_the_leader_lists(broker: Broker) -> None:
    """A follower and a broker without the replica refuse."""
    assert listed(broker, LATEST) is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.order(2) == [NONE]
    assert listed(broker, LATEST) is ErrorCode.NOT_LEADER_OR_FOLLOWER
    other = TopicPartition("t", 9)
    found = segment_listing.listed(broker.replicas, other, LATEST, 1, CONSUMER)
    assert found is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
