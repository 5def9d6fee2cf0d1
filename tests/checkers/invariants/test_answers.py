"""Answers to clients are checked by themselves, by earlier answers and by the leader's state."""

import pytest

from checkers.invariants.answers import Acknowledged, Answers, Stated, Term
from checkers.invariants.table import VIOLATIONS

KEY = "t-0"
TERM = Term(broker=1, life=1, key=KEY, log=0, epoch=3)


def stated(
    answers: Answers,
    watermark: int,
    *,
    end: int | None = None,
    stable: int | None = None,
    term: Term | None = TERM,
    own: int = 100,
    since: int | None = None,
) -> list[str]:
    """Return the violations in one answer to a consumer; by default its request came just now."""
    what = Stated(1, KEY, watermark, end, stable)
    moment = answers.moment if since is None else since
    found = [
        violation.invariant for violation in answers.stated(5, what, term, own=own, since=moment)
    ]
    assert VIOLATIONS.issuperset(found)
    return found


@pytest.mark.parametrize(
    ("end", "stable", "names"),
    [
        (None, None, []),
        (10, None, []),
        (11, None, ["answer-above-hw"]),
        (7, 7, []),
        (8, 7, ["answer-above-hw"]),
        (11, 7, ["answer-above-hw", "answer-above-hw"]),
    ],
)
def test_records_end_below_what_the_answer_states(
    end: int | None, stable: int | None, names: list[str]
) -> None:
    """Records end at the stated watermark, and for read_committed at the stable offset."""
    assert stated(Answers(), 10, end=end, stable=stable) == names
    assert stated(Answers(), 10, end=end, stable=stable, term=None) == names, "a follower too"


def test_a_leader_states_no_more_than_its_own_watermark() -> None:
    """Only the broker that leads since the request is compared with its own state."""
    assert stated(Answers(), 10, own=10) == []
    assert stated(Answers(), 11, own=10) == ["answer-above-hw"]
    assert stated(Answers(), 11, own=10, term=None) == []


def test_a_later_request_gets_no_earlier_watermark() -> None:
    """An earlier watermark is a violation if the request arrived after the other answer."""
    answers = Answers()
    before = answers.moment
    assert stated(answers, 10) == []
    assert stated(answers, 9, since=before) == [], "both requests were open at the same time"
    assert stated(answers, 10) == []
    assert stated(answers, 9) == ["answered-hw-monotone"]


@pytest.mark.parametrize(
    "later", [TERM._replace(life=2), TERM._replace(log=1), TERM._replace(epoch=4)]
)
def test_another_term_may_begin_with_an_earlier_watermark(later: Term) -> None:
    """A restart, another log or another epoch explains an earlier watermark."""
    answers = Answers()
    assert stated(answers, 10) == []
    assert stated(answers, 9, term=later) == []
    assert stated(answers, 8, term=later) == ["answered-hw-monotone"]


def test_an_acknowledged_batch_is_below_the_watermark() -> None:
    """acks=all waits until the watermark has reached the end of the batch."""

    def names(end: int, own: int) -> list[str]:
        found = Answers().acknowledged(5, Acknowledged(end), TERM, own=own)
        return [violation.invariant for violation in found]

    assert names(10, 10) == []
    assert names(11, 10) == ["acknowledged-above-hw"]
