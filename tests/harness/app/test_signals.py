"""Signals that end a command start what it needs, and then end it."""

import signal
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from harness.app import signals


@pytest.fixture
def interrupt() -> Iterator[Callable[[Any], None]]:
    """Yield a function that sets how SIGINT is handled: a process in the background ignores it."""
    before = signal.getsignal(signal.SIGINT)

    def handle(handler: Any) -> None:
        signal.signal(signal.SIGINT, handler)

    yield handle
    signal.signal(signal.SIGINT, before)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_action_before_the_end(number: signal.Signals, interrupt: Callable[[Any], None]) -> None:
    """The action runs, the block ends with an interrupt, and handlers are as before."""
    interrupt(signal.default_int_handler)
    done = threading.Event()
    with signals.as_interrupts():
        before = signal.getsignal(number)
        with pytest.raises(KeyboardInterrupt), signals.followed_by(done.set):
            signal.raise_signal(number)
        assert signal.getsignal(number) is before
    assert done.wait(10)


def test_an_ignored_signal_stays_ignored(interrupt: Callable[[Any], None]) -> None:
    """Neither does the action run, nor does the block end."""
    interrupt(signal.SIG_IGN)
    done = threading.Event()
    with signals.followed_by(done.set):
        assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
        signal.raise_signal(signal.SIGINT)
    assert not done.is_set()


def test_another_thread_receives_no_signals() -> None:
    """Handlers stay as they are."""
    seen = []

    def run() -> None:
        with signals.followed_by(lambda: None):
            seen.append(signal.getsignal(signal.SIGINT))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [signal.getsignal(signal.SIGINT)]


def test_an_error_that_hides_an_interrupt() -> None:
    """A library may raise another error while it handles the interrupt."""

    def cancelled() -> Exception:
        try:
            try:
                raise KeyboardInterrupt
            finally:
                raise ValueError("the job was cancelled")
        except ValueError as error:
            return error

    assert signals.is_interrupt(cancelled())
    assert not signals.is_interrupt(ValueError("the job failed"))
