"""The order of responses on one connection."""

import pytest

from checkers.invariants.response_order import PRODUCE, ResponseOrder

FETCH = 1


def judged(asked: list[tuple[int, int]], answered: list[int]) -> list[str | None]:
    order = ResponseOrder()
    for api_key, number in asked:
        order.asked(api_key, number)
    return [order.answered(number) for number in answered]


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ([(FETCH, 1), (FETCH, 2), (PRODUCE, 3)], [1, 2, 3]),
        ([(PRODUCE, 1), (PRODUCE, 2), (FETCH, 3)], [3]),  # acks=0
        ([(FETCH, 7), (FETCH, 7)], [7, 7]),  # a request that was delivered twice
    ],
)
def test_responses_in_the_order_of_requests(
    asked: list[tuple[int, int]], answered: list[int]
) -> None:
    """Each response is that to the oldest request, except for Produce without a response."""
    assert judged(asked, answered) == [None] * len(answered)


def test_a_response_before_that_of_an_earlier_request() -> None:
    """A response that overtakes another one is reported with both requests."""
    [overtaking] = judged([(FETCH, 1), (FETCH, 2)], [2])
    assert overtaking == "request 2 was answered before the earlier request 1 of API 1"


def test_a_produce_that_is_answered_too_late() -> None:
    """A Produce that a later response has passed had acks=0: no response to it may follow."""
    assert judged([(PRODUCE, 1), (FETCH, 2)], [2, 1]) == [
        None,
        "request 1 was answered after a later one",
    ]


@pytest.mark.parametrize("unasked", [1, 5])
def test_a_response_without_a_request(unasked: int) -> None:
    """A second response to a request, and one that no request asked for, are reported."""
    assert judged([(FETCH, 1)], [1, unasked]) == [
        None,
        f"the response {unasked} belongs to no open request",
    ]
