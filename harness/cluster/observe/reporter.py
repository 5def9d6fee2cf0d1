"""Reports what a witness has found in the answers of a broker."""

from collections.abc import Callable
from typing import NamedTuple

from model.violation import Violation


class Reporter(NamedTuple):
    """Makes violations of what the witnesses of one broker find."""

    broker: int
    """The broker's id."""
    now_ns: Callable[[], int]
    """Returns the history's time."""
    report: Callable[[Violation], None]
    """Is called with each violation."""

    def found(
        self,
        invariant: str,
        why: str | None,
        *,
        about: str = "",
        key: str | None = None,
        epochs: tuple[int, ...] = (),
    ) -> None:
        """Report that an invariant is violated, unless ``why`` is None.

        The text names the broker and, if it is given, what the violation is ``about``.
        """
        if why is not None:
            where = f"broker {self.broker}, {about}" if about else f"broker {self.broker}"
            self.report(
                Violation(
                    invariant=invariant,
                    time_ns=self.now_ns(),
                    key=key,
                    brokers=(self.broker,),
                    epochs=epochs,
                    why=f"{where}: {why}",
                )
            )
