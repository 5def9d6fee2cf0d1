"""Other protocols, correct by themselves, under which bugs show that ours would hide.

Ours is the careful one: a follower asks for the end of its last epoch before it fetches in a new
one (KIP-101), and a leader looks at the epoch of each fetch as well (KIP-595). Either is enough.
Epochs are durable before the batches that they are of, and would be found again in those.
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
    schedule="None: it loses nothing.",
)
def diverges(last_epoch: Epoch, offset: Offset, answer: tuple[Epoch, Offset]) -> bool:
    """A leader does not look whose records a follower has when it fetches.

    So it was until Kafka 2.7: a follower asks where to cut at the start of each leader epoch, and
    nobody looks again. That is enough, and it is all there is: bugs in it that KIP-595 would mend
    a moment later show.
    """
    return False


@mutant(
    "epochs-by-fetch",
    of="broker_impl.replica.follower:on_new_epoch",
    source="KIP-595",
    kind="protocol",
    symptom="",
    schedule="None: it loses nothing.",
)
def on_new_epoch(log_end: Offset, high_watermark: Offset, latest_epoch: Epoch) -> Offset | None:
    """A follower keeps its log and fetches at once; the answer says where the two part, if they do.

    So it is since Kafka 2.7: each fetch names the epoch of the last record, and the leader looks.
    Bugs show in what a leader makes of a fetch out of another history, which is never sent where
    followers ask before they fetch.
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
    schedule="None: it loses nothing.",
)
def write_epochs(disk: Disk, directory: str, epochs: LeaderEpochs) -> None:
    """The epochs are written down, and not synced.

    A loss of power may leave no file, an empty one, or a part of one, with which Kafka would not
    start before it was changed to sync again. Here what is missing or damaged is made anew from the
    log. Bugs in that show where it is needed.
    """
    path = f"{directory}/{loading.EPOCH_CHECKPOINT}"
    file = disk.open(f"{path}.new", create=True)
    file.truncate(0)
    file.append([checkpoints.format_epochs(epochs.entries)])
    file.close()
    disk.rename(f"{path}.new", path)
