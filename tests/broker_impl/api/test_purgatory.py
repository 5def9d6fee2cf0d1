import asyncio
from functools import partial

import pytest

from broker_impl.api import groups
from broker_impl.api.access import guard
from broker_impl.api.purgatory import Waiting
from broker_impl.errors import StorageError
from broker_impl.wire.types import TopicPartition

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


async def test_a_notification_settles_what_is_ready() -> None:
    """A request is answered by the first notification of a partition that makes it ready."""
    waiting = Waiting()
    ready: list[bool] = []
    answer = waiting.park([A, B], lambda expired: "done" if ready else None, 10)
    waiting.notify(A)
    assert not answer.done()
    ready.append(True)
    waiting.notify(B)
    assert await answer == "done"
    assert len(waiting) == 0


async def test_what_moves_together_is_tried_once() -> None:
    """A request of several partitions that move together is tried once.

    Before the attempt it receives the moved partitions in their order, without partitions that
    it does not wait for.
    """
    waiting = Waiting()
    told: list[object] = []
    waiting.park([A, B], lambda expired: told.append("attempt"), 10, told.append)
    waiting.notify(B, TopicPartition("c", 0), A)
    waiting.notify(A)
    assert told == [[B, A], "attempt", [A], "attempt"]


async def test_time_settles_what_never_gets_ready() -> None:
    """At the timeout, the attempt is called as expired and must answer."""
    waiting = Waiting()
    answer = waiting.park([A], lambda expired: "late" if expired else None, 0.001)
    assert await answer == "late"
    assert len(waiting) == 0


async def test_a_cancelled_answer_is_forgotten() -> None:
    """A connection that closes cancels its parked requests."""
    waiting = Waiting()
    attempts: list[bool] = []

    def attempt(expired: bool) -> None:
        attempts.append(expired)

    answer = waiting.park([A], attempt, 10)
    answer.cancel()
    assert len(waiting) == 0
    waiting.notify(A)
    assert attempts == []
    assert not answer.cancel()


def _named(name: str, order: list[str], expired: bool) -> str:
    order.append(name)
    return name


async def test_an_answer_is_passed_on_before_the_next_request_is_tried() -> None:
    """Requests that wait for the same partition do not delay each other's answers."""
    waiting = Waiting()
    order: list[str] = []
    for name in ("first", "second"):
        parked = waiting.park([A], partial(_named, name, order), 10)
        parked.on_answer(lambda done: order.append(f"answer of the {done.result()}"))
    waiting.notify(A)
    assert order == ["first", "answer of the first", "second", "answer of the second"]


async def test_an_answer_that_is_there_is_passed_on_soon() -> None:
    """The callback of a request that has its answer is called as that of any future."""
    waiting = Waiting()
    parked = waiting.park([A], lambda expired: "done", 10)
    waiting.notify(A)
    answers: list[str] = []
    parked.on_answer(lambda done: answers.append(done.result()))
    assert answers == []
    await asyncio.sleep(0)
    assert answers == ["done"]


async def test_a_cancelled_request_passes_nothing_on() -> None:
    """Nothing is called for a request that was cancelled."""
    waiting = Waiting()
    answers: list[object] = []
    parked = waiting.park([A], lambda expired: "done", 10)
    parked.on_answer(answers.append)
    parked.cancel()
    waiting.notify(A)
    await asyncio.sleep(0)
    assert answers == []


async def test_requests_are_tried_in_the_order_they_came() -> None:
    """Requests that wait for the same partition are tried in the order of their arrival."""
    waiting = Waiting()
    order: list[str] = []

    def attempt(name: str) -> str:
        order.append(name)
        return name

    waiting.park([A], lambda expired: attempt("first"), 10)
    waiting.park([A], lambda expired: attempt("second"), 10)
    waiting.notify(A)
    assert order == ["first", "second"]


async def test_a_notification_from_within_an_attempt_is_harmless() -> None:
    """An attempt may notify its own partition: an answer may move the partition of another."""
    waiting = Waiting()

    def attempt(expired: bool) -> str:
        waiting.notify(A)
        return "done"

    first = waiting.park([A], attempt, 10)
    second = waiting.park([A], lambda expired: "too", 10)
    waiting.notify(A)
    assert (await first, await second) == ("done", "too")


async def test_an_attempt_that_fails_is_the_answer() -> None:
    """The error of an attempt becomes the answer, at a notification and at the timeout."""
    waiting = Waiting()

    def fail(expired: bool) -> None:
        raise StorageError("EIO")

    answers = [waiting.park([A], fail, 10), waiting.park([B], fail, 0.001)]
    waiting.notify(A)
    for answer in answers:
        with pytest.raises(StorageError, match="EIO"):
            await answer
    assert len(waiting) == 0


async def test_a_place_for_many_partitions() -> None:
    """A request can wait at a place that stands for partitions, also for several of them at once.

    It is tried with the partitions that have changed, and not for partitions of other places.
    """
    waiting = Waiting(lambda partition: [7] if partition in (A, B) else [])
    told: list[object] = []
    waiting.park([7], lambda expired: told.append("attempt"), 10, told.append)
    waiting.notify(A, TopicPartition("c", 0), B)
    waiting.notify(TopicPartition("c", 0))
    assert told == [[A, B], "attempt"]
    assert A in waiting
    assert TopicPartition("c", 0) not in waiting
    assert len(waiting) == 1


async def test_the_requests_at_one_place_are_retried() -> None:
    """A place may change by itself: only the requests that are parked at it are tried."""
    waiting = Waiting(lambda partition: [7])
    tried: list[str] = []
    waiting.park([7], lambda expired: tried.append("place"), 10)
    waiting.park([A], lambda expired: tried.append("partition"), 10)
    waiting.retry(7)
    waiting.retry(8)
    assert tried == ["place"]


async def test_an_error_behind_a_parked_request_is_passed_on() -> None:
    """Combined and changed answers fail with their parts: none is left waiting for ever."""
    waiting = Waiting()

    def fails(expired: bool) -> str:
        raise StorageError("the disk failed")

    both = groups.when_all(
        [waiting.park([A], lambda expired: "done", 10), waiting.park([A], fails, 10)], list
    )
    changed = guard.then(waiting.park([B], lambda expired: "done", 10), lambda answer: 1 / 0)
    cancelled = guard.then(given_up := waiting.park([B], fails, 10), str)
    given_up.cancel()
    waiting.notify(A, B)
    for answer, error in (
        (both, StorageError),
        (changed, ZeroDivisionError),
        (cancelled, asyncio.CancelledError),
    ):
        with pytest.raises(error):
            await asyncio.wait_for(answer, 1)
