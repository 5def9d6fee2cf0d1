import pytest

from broker_impl.replica import selection
from broker_impl.replica.selection import Candidate

LEADER = Candidate(1, "a", 0, 9, True)


@pytest.mark.parametrize(
    ("rack", "followers", "chosen"),
    [
        ("b", [Candidate(2, "b", 0, 9, True)], 2),
        ("a", [Candidate(2, "a", 0, 9, True)], None),
        ("c", [Candidate(2, "b", 0, 9, True)], None),
        ("", [Candidate(2, "", 0, 9, True)], None),
        ("b", [Candidate(2, "b", 0, 9, False)], None),
        ("b", [Candidate(2, "b", 0, 4, True)], None),
        ("b", [Candidate(2, "b", 6, 9, True)], None),
        ("b", [Candidate(2, "b", 0, 5, True)], 2),
        ("b", [Candidate(2, "b", 0, 9, True), Candidate(3, "b", 0, 7, True)], 2),
        ("b", [Candidate(2, "b", 0, 9, True), Candidate(3, "b", 0, 9, True)], 3),
    ],
)
def test_a_reader_is_sent_next_door(
    rack: str, followers: list[Candidate], chosen: int | None
) -> None:
    """KIP-392: the reader gets an in-sync replica of its rack that has offset 5.

    The leader serves readers of its own rack.
    """
    assert selection.preferred(rack, LEADER, followers, 5) == chosen
