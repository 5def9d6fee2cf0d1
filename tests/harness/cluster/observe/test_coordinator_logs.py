"""A coordinator is judged by a log that it leads and can read."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.errors import StorageError
from broker_impl.log.epochs import EpochStart, LeaderEpochs
from broker_impl.replica.events import Role
from broker_impl.wire.types import TopicPartition
from harness.cluster.observe import coordinator_logs

HOME = TopicPartition("__consumer_offsets", 2)


def replica(*, role: Role = Role.LEADER, offline: StorageError | None = None) -> Any:
    """Return a replica with offsets 3 to 9, of which 3 has an unknown epoch."""
    epochs = LeaderEpochs([EpochStart(5, 4), EpochStart(7, 8)])
    log = SimpleNamespace(offline=offline, end_offset=10, epochs=epochs)
    return SimpleNamespace(role=role, log=log)


@pytest.mark.parametrize(
    ("found", "is_led"),
    [
        (replica(), True),
        (replica(role=Role.FOLLOWER), False),
        (replica(offline=StorageError("EIO")), False),
        (None, False),
    ],
)
def test_which_logs_are_led(found: Any, is_led: bool) -> None:
    """Followers, logs on a failed disk and partitions of other brokers are not."""
    partitions = {} if found is None else {HOME: found}
    broker: Any = SimpleNamespace(replicas=SimpleNamespace(partitions=partitions))
    assert coordinator_logs.led(broker, HOME) is (found if is_led else None)


def test_the_epochs_of_records() -> None:
    """An offset has the epoch that began last before it, if the log has the offset."""
    epochs = [coordinator_logs.epoch_at(replica(), offset) for offset in (3, 4, 7, 8, 9, 10)]
    assert epochs == [None, 5, 5, 7, 7, None]
    assert coordinator_logs.last_before(replica(), 4) is None
    assert coordinator_logs.last_before(replica(), 8) == (7, 5)
