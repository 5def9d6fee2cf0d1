"""Handles the signals that end a command: Ctrl-C, a service manager's, a closed terminal's."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType


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
def followed_by(action: Callable[[], object]) -> Iterator[None]:
    """Start a thread for an action when one of these signals comes within the block, and then
    handle the signal as before. A signal that is ignored stays ignored, such as SIGINT in a process
    that a shell has started in the background. Only the main thread receives signals; others change
    nothing."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    handlers = {number: signal.getsignal(number) for number in ending()}
    before = {number: each for number, each in handlers.items() if each is not signal.SIG_IGN}

    def handle(number: int, frame: FrameType | None) -> None:
        threading.Thread(target=action, name="interrupted", daemon=True).start()
        earlier = before[signal.Signals(number)]
        if callable(earlier):
            earlier(number, frame)

    for number in before:
        signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether an error was raised while ``KeyboardInterrupt`` was handled."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


@contextlib.contextmanager
def ignored() -> Iterator[None]:
    """Ignore these signals within the block: for a clean-up that takes a bounded time."""
    before = {number: signal.signal(number, signal.SIG_IGN) for number in ending()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
