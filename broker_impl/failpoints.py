"""Failpoints: named points in the broker where a test can hold the execution to force an order.

A race is an order of two actions that the code leaves open. Where such an order matters, the code
calls ``await point(name)``, which returns at once, without a turn of the event loop, unless a hold
is installed. A simulation may also hold the execution there at random.
"""

from collections.abc import Awaitable, Callable
from typing import Final, TypeAlias

Hold: TypeAlias = Callable[[str], Awaitable[None]]

ISR_WRITE: Final = "isr.before-zk-write"
"""A leader has decided on a new ISR, and has not written it to ZooKeeper yet."""
CONTROLLER_CLAIM: Final = "controller.before-claim"
"""A broker has found no controller and has read the epoch; it has not written its claim yet."""
CONTROLLER_EVENT: Final = "controller.before-event"
"""The controller was notified of an event, and has not read anything for it yet."""
CONTROLLER_WRITE: Final = "controller.before-zk-write"
"""The controller has chosen leaders, and has not written them to ZooKeeper yet."""
MARKERS: Final = "transactions.before-markers"
"""A transaction coordinator has stored its decision, and has sent no markers to leaders yet."""
MARKED: Final = "transactions.before-marked"
"""A leader has answered for its markers, and the coordinator has not noted the answer yet."""
LOAD: Final = "coordinators.in-a-load"
"""A coordinator has read a part of its log, and goes on with the next one."""
GROUPS_READ: Final = "groups.before-loaded"
"""A group coordinator has read the committed state of its groups, and does not answer yet."""
CLEANER: Final = "cleaner.in-a-pass"
"""The cleaner pauses within a pass: the records read or copied have not replaced anything yet."""

POINTS: Final = (
    ISR_WRITE,
    CONTROLLER_CLAIM,
    CONTROLLER_EVENT,
    CONTROLLER_WRITE,
    MARKERS,
    MARKED,
    LOAD,
    GROUPS_READ,
    CLEANER,
)

_hold: Hold | None = None


def hold_by(hold: Hold | None) -> None:
    """Await ``hold`` with the name of every point that is reached; None removes the hold."""
    global _hold
    _hold = hold


async def point(name: str) -> None:
    """Wait here if a hold is installed."""
    if _hold is not None:
        await _hold(name)
