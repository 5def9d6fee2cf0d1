"""What brokers report to clients about the cluster."""

from collections.abc import Iterator, Mapping

from checkers.invariants.step import Step
from model.snapshot import Shown
from model.violation import Violation


class Views:
    """``metadata-epoch-monotone``: a broker never reports an earlier leader than it did before.

    What brokers report comes from controllers, which write each leader to ZooKeeper before they
    announce it, in an epoch that is higher than those before. A new controller reads the leaders
    there, and its first request is already valid. A broker rejects an order of a former controller,
    or to a former registration of the broker (KIP-380). So between two starts of a broker, the
    leader epoch of a partition goes back only if a message came late and was mistaken for a new one
    (KAFKA-7738). A topic that is created again begins at 0, so topics that were ever deleted are
    not checked.
    """

    def __init__(self) -> None:
        self._reported: dict[int, tuple[int, Mapping[str, Shown]]] = {}

    def step(self, step: Step) -> Iterator[Violation]:
        """Process the next snapshot."""
        for number, broker in step.now.brokers.items():
            life, before = self._reported.get(number, (0, {}))
            if broker.shown is before:
                continue
            self._reported[number] = broker.life, broker.shown
            if broker.life != life:
                continue
            for key, shown in broker.shown.items():
                epoch = shown.leader_epoch
                known = before.get(key, shown).leader_epoch
                if epoch < known and not step.is_deleted(key):
                    yield step.violation(
                        "metadata-epoch-monotone",
                        f"broker {number} returned the leader of epoch {known} to clients, and "
                        f"then the leader of epoch {epoch}",
                        key=key,
                        brokers=(number,),
                        epochs=(known, epoch),
                    )
