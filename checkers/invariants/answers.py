"""What brokers answer to clients: each answer is checked at the moment at which it is given.

A snapshot shows a broker's state, but not what it has sent meanwhile. The checks here compare an
answer with itself, with earlier answers of the same leader, and with the leader's state now:

- ``answer-above-hw``: a fetch returns no record above the high watermark that it states, to a
  read_committed consumer none above the stable offset, and no leader states a watermark above its
  own (R10).
- ``answered-hw-monotone``: while a broker leads in one epoch, a request that arrives after a
  watermark was stated is not answered with an earlier one (R7).
- ``acknowledged-above-hw``: a produce request with acks=all is acknowledged only when the leader's
  watermark has reached the end of its batch (R11).

Two requests that are open at the same time may be answered in any order, so that only requests
which begin after an answer are compared with it.
"""

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from model.violation import Violation


class Term(NamedTuple):
    """A broker's leadership of a partition, between two elections."""

    broker: int
    life: int
    """Counts the starts of the broker."""
    key: str
    log: int
    """Differs if the topic was deleted and created again."""
    epoch: int


@dataclass(frozen=True, slots=True)
class Stated:
    """What an answer states of one partition to a client."""

    broker: int
    key: str
    watermark: int
    """The high watermark in the answer, or the end that ListOffsets returns."""
    records_end: int | None = None
    """The offset after the last batch in the answer; None if there is none."""
    stable: int | None = None
    """The last stable offset, if only committed transactions were requested."""


@dataclass(frozen=True, slots=True)
class Acknowledged:
    """A batch that is acknowledged to a producer with acks=all."""

    end: int
    """The offset after the batch."""


class Answers:
    """Checks each answer, and remembers the watermarks that leaders have stated."""

    def __init__(self) -> None:
        self._moment = 0
        self._stated: dict[tuple[int, str], tuple[Term, list[int], list[int]]] = {}
        """For each partition of a broker: its term, moments, and the highest watermark stated until
        each of them."""

    @property
    def moment(self) -> int:
        """The number of answers and elections so far, by which requests are compared with them."""
        return self._moment

    def next_moment(self) -> int:
        """Count an election, and return its number."""
        self._moment += 1
        return self._moment

    def stated(
        self, now_ns: int, stated: Stated, term: Term | None, *, own: int, since: int
    ) -> Iterator[Violation]:
        """Check an answer to a consumer.

        Args:
            now_ns: the time of the answer.
            stated: what it states.
            term: the leadership of the broker, if that lasts since the request has arrived; None if
                the broker follows, or has become a leader meanwhile.
            own: the high watermark of the broker now.
            since: the ``moment`` at which the request has arrived.
        """
        self._moment += 1
        for limit, name in ((stated.watermark, "high watermark"), (stated.stable, "stable offset")):
            if limit is not None and stated.records_end is not None and stated.records_end > limit:
                yield Violation(
                    invariant="answer-above-hw",
                    time_ns=now_ns,
                    key=stated.key,
                    offset=limit,
                    brokers=(stated.broker,),
                    why=f"broker {stated.broker} returned records below offset "
                    f"{stated.records_end} with a {name} of {limit}",
                )
        if term is None:
            return
        if stated.watermark > own:
            yield _violation(
                "answer-above-hw",
                now_ns,
                term,
                stated.watermark,
                f"leader {term.broker} returned the high watermark {stated.watermark}, "
                f"but its own is {own}",
            )
        before = self._highest(term, since)
        if stated.watermark < before:
            yield _violation(
                "answered-hw-monotone",
                now_ns,
                term,
                stated.watermark,
                f"leader {term.broker} returned the high watermark {before}, and "
                f"{stated.watermark} to a later request",
            )
        self._remember(term, stated.watermark)

    def acknowledged(
        self, now_ns: int, batch: Acknowledged, term: Term, *, own: int
    ) -> Iterator[Violation]:
        """Check an acknowledgement with acks=all by a leader that leads since the request."""
        self._moment += 1
        if batch.end > own:
            yield _violation(
                "acknowledged-above-hw",
                now_ns,
                term,
                batch.end,
                f"leader {term.broker} acknowledged a batch up to offset {batch.end} with "
                f"acks=all, but its high watermark is {own}",
            )

    def _highest(self, term: Term, since: int) -> int:
        known, moments, marks = self._stated.get((term.broker, term.key), (None, [], []))
        count = bisect_right(moments, since) if known == term else 0
        return marks[count - 1] if count else 0

    def _remember(self, term: Term, watermark: int) -> None:
        place = term.broker, term.key
        known = self._stated.get(place)
        if known is None or known[0] != term:
            self._stated[place] = term, [self._moment], [watermark]
        elif watermark > known[2][-1]:
            known[1].append(self._moment)
            known[2].append(watermark)


def _violation(invariant: str, now_ns: int, term: Term, offset: int, why: str) -> Violation:
    return Violation(
        invariant=invariant,
        time_ns=now_ns,
        key=term.key,
        offset=offset,
        brokers=(term.broker,),
        epochs=(term.epoch,),
        why=why,
    )
