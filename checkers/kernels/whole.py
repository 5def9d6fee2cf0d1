"""Everything that is asked of a whole history, after its keys: what no single key can tell."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import NamedTuple

from checkers.kernels import cycles, outputs, phantom, progress, torn, transactions, unproven
from checkers.kernels.receipts import Asking, Receipt
from checkers.kernels.rows import Found, History

Kernel = Callable[[History], Iterable[Found]]
Retelling = Callable[[History, Sequence[Found]], Iterable[Found]]
"""What was found so far, as those tell it who see all keys: renamed, or folded."""

KERNELS: dict[str, Kernel] = {
    "transactions": transactions.kernel,
    "cycles": cycles.kernel,
    "outputs": outputs.kernel,
    "producers": progress.stuck_producers,
}

RETELLINGS: dict[str, Retelling] = {
    "misrouted": phantom.misrouted,
    "unproven": unproven.kernel,
    "torn": torn.kernel,
}


class Report(NamedTuple):
    """All that was found in a history, and that its keys were looked at together."""

    found: list[Found]
    receipts: list[Receipt]


def judge(history: History, of_keys: Iterable[Found]) -> Report:
    """Ask everything of a whole history. ``of_keys`` was found in its keys, each by itself."""
    asking = Asking()
    found = list(of_keys)
    for name, kernel in KERNELS.items():
        found += asking.ask(name, partial(kernel, history)) or []
    for name, retelling in RETELLINGS.items():
        told = asking.ask(name, partial(retelling, history, found))
        found = found if told is None else told
    return Report(found, asking.receipts)
