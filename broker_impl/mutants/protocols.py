"""Other replication protocols, correct by themselves, that let bugs show which ours would hide.

This broker has both checks: a follower asks for the end of its last epoch before it fetches in a
new one (KIP-101), and a leader compares the epoch of each fetch as well (KIP-595). Either is
enough. Epochs are durable before the batches that belong to them, and could also be rebuilt from
these batches.
"""

from broker_impl.log import checkpoints, loading
from broker_impl.log.disk import Disk
from broker_impl.log.epochs import LeaderEpochs
from broker_impl.mutants import mutant
from broker_impl.replica import follower
from broker_impl.wire.types import Epoch, Offset


@mutant(
    "epochs-by-question",
    of="broker_impl.replica.follower:diverges",
    source="KIP-101, KIP-279, KIP-320; before KIP-595",
    kind="protocol",
    symptom="",
    schedule="None: the protocol loses no data.",
)
def diverges(last_epoch: Epoch, offset: Offset, answer: tuple[Epoch, Offset]) -> bool:
    """A leader does not compare the epoch of a fetch with its own log.

    This is the protocol before Kafka 2.7: a follower asks where to truncate at the start of each
    leader epoch, and there is no later check. That is sufficient, but there is no second check:
    bugs show that KIP-595 would correct a moment later.
    """
    return False


@mutant(
    "epochs-by-fetch",
    of="broker_impl.replica.follower:on_new_epoch",
    source="KIP-595",
    kind="protocol",
    symptom="",
    schedule="None: the protocol loses no data.",
)
def on_new_epoch(log_end: Offset, high_watermark: Offset, latest_epoch: Epoch) -> Offset | None:
    """A follower keeps its log and fetches at once; the answer says where the two logs diverge.

    This is the protocol since Kafka 2.7: each fetch names the epoch of the last record, and the
    leader compares it. Bugs show in how a leader handles a fetch from a diverging log, which is
    never sent where followers ask before they fetch.
    """
    if latest_epoch == follower.UNDEFINED:
        return min(high_watermark, log_end)
    return log_end


@mutant(
    "epochs-unsynced",
    of="broker_impl.log.loading:write_epochs",
    source="A17, KAFKA-16541",
    kind="protocol",
    symptom="",
    schedule="None: the protocol loses no data.",
)
def write_epochs(disk: Disk, directory: str, epochs: LeaderEpochs) -> None:
    """The epoch checkpoint is written but not synced.

    A power loss may leave no file, an empty file, or a part of one; Kafka then failed to start,
    until it was changed to sync the file again. Here a missing or damaged checkpoint is rebuilt
    from the log, and bugs in that code show where it is needed.
    """
    path = f"{directory}/{loading.EPOCH_CHECKPOINT}"
    file = disk.open(f"{path}.new", create=True)
    file.truncate(0)
    file.append([checkpoints.format_epochs(epochs.entries)])
    file.close()
    disk.rename(f"{path}.new", path)
