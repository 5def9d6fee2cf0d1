"""Other protocols, correct by themselves, under which bugs show that ours would hide.

Ours is the careful one: a follower asks for the end of its last epoch before it fetches in a new
one (KIP-101), and a leader looks at the epoch of each fetch as well (KIP-595). Either is enough.
"""

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
