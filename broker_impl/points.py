"""Named points in the broker, at which whoever orders two of its paths exactly may hold it.

A race is the order of two things that nobody has ordered. Where one matters, the code says so with
``await point(name)``, which returns at once, without a turn of the loop, unless somebody waits for
it there.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

Hold: TypeAlias = Callable[[str], Awaitable[None]]

ISR_WRITE: Final = "isr.before-zk-write"
"""A leader has decided on another ISR, and ZooKeeper has not heard of it."""
CONTROLLER_CLAIM: Final = "controller.before-claim"
"""A broker has found that nobody is the controller, and read the epoch; it has claimed nothing."""
CONTROLLER_EVENT: Final = "controller.before-event"
"""The controller has heard of something, and has looked at nothing yet."""
CONTROLLER_WRITE: Final = "controller.before-zk-write"
"""It has chosen leaders, and ZooKeeper has not heard of them."""
MARKERS: Final = "transactions.before-markers"
"""A coordinator has decided and stored how a transaction ends, and no leader has heard of it."""
GROUPS_READ: Final = "groups.before-loaded"
"""A coordinator has read what its groups have committed, and says nothing of it yet."""
CLEANER: Final = "cleaner.in-a-pass"
"""A pass over a compacted log pauses: what was read or copied has replaced nothing yet."""

POINTS: Final = (
    ISR_WRITE,
    CONTROLLER_CLAIM,
    CONTROLLER_EVENT,
    CONTROLLER_WRITE,
    MARKERS,
    GROUPS_READ,
    CLEANER,
)

_hold: Hold | None = None


def hold_by(hold: Hold | None) -> None:
    """From now on ``hold`` is awaited at every point, with its name; with None, nothing is."""
    global _hold
    _hold = hold


async def point(name: str) -> None:
    """Here one can be held."""
    if _hold is not None:
        await _hold(name)
