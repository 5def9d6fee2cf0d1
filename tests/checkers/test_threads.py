"""Threads share the work on a history, and results keep their order."""

import threading

import pytest

from checkers import threads


@pytest.mark.parametrize("count", [1, 2, 3])
def test_results_are_in_the_order_of_the_items(count: int) -> None:
    """The order of results does not depend on which thread is faster."""
    assert list(threads.mapped(lambda item: item * item, range(50), count)) == [
        item * item for item in range(50)
    ]


def test_two_items_are_worked_on_at_once() -> None:
    """Two threads work at the same time: each waits for the other."""
    both = threading.Barrier(2, timeout=30)
    assert sorted(threads.mapped(lambda item: both.wait(), range(2), 2)) == [0, 1]


def test_no_more_is_done_than_there_are_threads() -> None:
    """No item is begun before a result of an earlier one was taken."""
    begun: list[int] = []
    results = threads.mapped(begun.append, range(10), 2)
    for taken in range(3):
        next(results)
        assert len(begun) <= taken + 2


@pytest.mark.parametrize("count", [1, 2])
def test_an_error_is_raised_in_its_place(count: int) -> None:
    """The results before the first item that fails are yielded, and then its error is raised."""
    results = threads.mapped(lambda item: 1 // (2 - item), range(5), count)
    assert [next(results), next(results)] == [0, 1]
    with pytest.raises(ZeroDivisionError):
        next(results)


@pytest.mark.parametrize("count", [1, 2])
def test_both_results_are_returned_in_their_order(count: int) -> None:
    """The result of the first function comes first, whichever ends first."""
    assert threads.both(lambda: 1, lambda: "two", count) == (1, "two")


def test_two_functions_run_at_once() -> None:
    """Two functions run at the same time: each waits for the other."""
    barrier = threading.Barrier(2, timeout=30)
    assert sorted(threads.both(barrier.wait, barrier.wait, 2)) == [0, 1]


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("failing", [0, 1])
def test_an_error_of_either_function_is_raised(count: int, failing: int) -> None:
    """No error is lost, whether the first or the second function raises it."""
    functions = [lambda: 1, lambda: 2]
    functions[failing] = lambda: 1 // 0
    with pytest.raises(ZeroDivisionError):
        threads.both(functions[0], functions[1], count)
