"""Signals that end a command start what it needs, and then end it."""

import signal
import threading

import pytest

from harness.app import signals


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_action_before_the_end(number: signal.Signals) -> None:
    """The action runs, the block ends with an interrupt, and handlers are as before."""
    done = threading.Event()
    with signals.as_interrupts():
        before = signal.getsignal(number)
        with pytest.raises(KeyboardInterrupt), signals.followed_by(done.set):
            signal.raise_signal(number)
        assert signal.getsignal(number) is before
    assert done.wait(10)


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
