import pytest

from checkers.invariants.fetch_sizes import UNKNOWN, Part, beyond


def part(key: str, limit: int, *batches: int) -> Part:
    return Part(key, limit, batches)


@pytest.mark.parametrize(
    "parts",
    [
        [],
        [part("a", 10), part("b", 10)],
        [part("a", 10, 5, 5)],
        [part("a", 10, 300)],  # the first batch, however large it is
        [part("a", 10, 30), part("b", 100, 40, 30)],
        [part("a", 10), part("b", 10, 30), part("c", 10, 10)],
        [part("a", UNKNOWN, 60, 40)],
        [part("a", UNKNOWN, 300)],
    ],
)
def test_limits_do_not_concern_the_first_batch(parts: list[Part]) -> None:
    """Otherwise a reader with a limit below the size of a batch could not go on."""
    assert beyond(100, parts) is None


@pytest.mark.parametrize(
    ("parts", "key"),
    [
        ([part("a", 10, 5, 6)], "a"),
        ([part("a", 10, 30, 1)], "a"),  # after the first batch, the limit is used up
        ([part("a", 90, 60), part("b", 90, 41)], "b"),  # together more than the response may have
        ([part("a", 10, 300), part("b", 10, 1)], "b"),
        ([part("a", UNKNOWN, 60, 41)], "a"),
        ([part("a", 10, 30), part("b", 10, 30)], "b"),  # a second batch that is too large
    ],
)
def test_a_response_has_no_more_bytes_than_the_reader_asks_for(parts: list[Part], key: str) -> None:
    """The limit of each partition and that of the response hold both."""
    found = beyond(100, parts)
    assert found is not None
    assert found[0] == key
