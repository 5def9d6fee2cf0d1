"""What brokers tell clients of the cluster."""

from collections.abc import Iterator, Mapping

from checkers.invariants.step import Step
from model.violation import Violation


class Views:
    """``metadata-epoch-monotone``: a broker never tells of an earlier leader than it did before.

    What clients are told comes from controllers, who write each leader into ZooKeeper before they
    tell of it, in an epoch that is higher than those before. A new controller reads them there, and
    is believed from its first word on; an order of a former one, or to a former registration of the
    broker, is refused (KIP-380). So in one life of a broker the leader epoch of a partition goes
    back only if a message came late and was taken for news (KAFKA-7738). A topic that is made anew
    begins at 0: what was ever deleted is not looked at.
    """

    def __init__(self) -> None:
        self._told: dict[int, tuple[int, Mapping[str, int]]] = {}

    def step(self, step: Step) -> Iterator[Violation]:
        """Take the next snapshot in."""
        for number, broker in step.now.brokers.items():
            life, before = self._told.get(number, (0, {}))
            if broker.told is before:
                continue
            self._told[number] = broker.life, broker.told
            if broker.life != life:
                continue
            for key, epoch in broker.told.items():
                known = before.get(key, epoch)
                if epoch < known and key not in step.deleted:
                    yield step.violation(
                        "metadata-epoch-monotone",
                        f"broker {number} told clients of the leader of epoch {known}, and then of"
                        f" that of epoch {epoch}",
                        key=key,
                        brokers=(number,),
                        epochs=(known, epoch),
                    )
