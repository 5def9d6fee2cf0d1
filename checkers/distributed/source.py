"""What a plan needs of the place where the events of a history are."""

from collections.abc import Sequence
from typing import Protocol

from checkers.distributed.chunk_tasks import Prepared
from checkers.distributed.runner import Runner


class Source(Protocol):
    """One history that was cut into chunks."""

    @property
    def name(self) -> str:
        """What messages call the history."""
        ...

    def prepared(self, runner: Runner) -> Sequence[Prepared]:
        """Read all chunks, in the order of their events.

        Raises :class:`~model.history.BadHistory` about the first chunk that cannot be read.
        """
        ...

    def place(self, event: int, row: int) -> str:
        """Return where the event with this index and row is, as the beginning of a message."""
        ...

    def torn(self, prepared: Sequence[Prepared]) -> str | None:
        """Return what was left out at the end of the history, as one sentence."""
        ...
