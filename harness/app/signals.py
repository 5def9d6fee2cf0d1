"""Handles the signals that end a command: Ctrl-C, a service manager's, a closed terminal's."""

import contextlib
import signal
from collections.abc import Iterator


def ending() -> tuple[signal.Signals, ...]:
    """Return SIGINT, SIGTERM and SIGHUP; without SIGHUP where it is ignored, as under ``nohup``."""
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return signal.SIGINT, signal.SIGTERM
    return signal.SIGINT, signal.SIGTERM, signal.SIGHUP


@contextlib.contextmanager
def as_interrupts() -> Iterator[None]:
    """Raise ``KeyboardInterrupt`` on SIGTERM and SIGHUP within the block, as for SIGINT."""
    numbers = [number for number in ending() if number is not signal.SIGINT]
    before = {number: signal.signal(number, signal.default_int_handler) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """Ignore these signals within the block: for a clean-up that takes a bounded time."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ending()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
