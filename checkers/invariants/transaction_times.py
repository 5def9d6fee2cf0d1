"""When a coordinator may abort a transaction, and forget a transactional id.

- ``aborted-after-timeout``: a transaction that is not ended by its producer, and whose
  transactional id no producer asks for, is aborted only after the timeout that its producer has
  asked for (KIP-98). Each coordinator has this timeout. It counts from the first partition of this
  transaction, and not from that of an earlier one. A producer whose transaction is aborted is
  fenced, and most applications end then.
- ``transactional-id-kept``: a coordinator forgets a transactional id only when it was not used for
  ``transactional.id.expiration.ms`` (KIP-98). Its producer cannot begin another transaction.

Only what is certain is judged: an InitProducerId without an answer may take effect later, so its
transactions are not judged until each has an answer. A coordinator is not judged whose log lacks
the last record of the moment at which the request in question was answered, as after a power loss.
"""

from collections import Counter
from collections.abc import Callable
from typing import Final, NamedTuple

from checkers.invariants.deleted_offsets import LastRecord

ROUNDING_MS: Final = 1.0
"""Coordinators store times in whole milliseconds."""
EpochAt = Callable[[int], int | None]
"""Returns the leader epoch of the record at an offset of a coordinator's log; None: it has none."""


class Answered(NamedTuple):
    """The coordinator that has answered a request, and its log then."""

    leader_epoch: int
    last: LastRecord
    """The last record that was committed."""


class Coordinator(NamedTuple):
    """A coordinator that is judged."""

    leader_epoch: int
    epoch_at: EpochAt

    def knows(self, answered: Answered) -> bool:
        """Whether its log has what another coordinator had when it answered."""
        last = answered.last
        is_later = self.leader_epoch >= answered.leader_epoch
        return is_later and self.epoch_at(last.offset) == last.epoch


class _Timeout(NamedTuple):
    """The timeout of a producer's transactions."""

    producer: int
    epoch: int
    ms: int
    answered: Answered
    """The InitProducerId that has given the epoch."""


class _Open(NamedTuple):
    """A transaction that was open when an addition to it was acknowledged."""

    timeout: _Timeout
    since_ns: int
    """It has not begun before."""
    answered: Answered
    """The addition."""


class Added(NamedTuple):
    """A request that adds partitions to a transaction, when it arrives."""

    name: str
    since_ns: int
    """When the earliest request arrived that may be the one that begins the transaction."""
    changes: int
    """The requests so far that end the transaction, or replace its producer."""


class _Used(NamedTuple):
    """The last use of a transactional id that was acknowledged."""

    at_ns: int
    """When the request arrived."""
    answered: Answered


class TransactionTimes:
    """What all coordinators of a run have answered to producers, by transactional id."""

    def __init__(self) -> None:
        self._timeouts: dict[str, _Timeout] = {}
        self._open: dict[str, _Open] = {}
        self._changes: Counter[str] = Counter()
        self._initialized: Counter[str] = Counter()
        """The answers to InitProducerId so far."""
        self._inits: Counter[str] = Counter()
        self._adding: dict[str, list[Added]] = {}
        """The additions without an answer."""
        self._used: dict[str, _Used] = {}

    def initializes(self, name: str) -> None:
        """An InitProducerId arrives, which aborts an open transaction."""
        self._inits[name] += 1
        self._timeouts.pop(name, None)
        self.ends(name)

    def initialized(
        self, name: str, producer: int, epoch: int, timeout_ms: int, answered: Answered | None
    ) -> None:
        """An InitProducerId is answered; ``answered`` is None if it was refused."""
        self._initialized[name] += 1
        if answered is not None and self._initialized[name] == self._inits[name]:
            self._timeouts[name] = _Timeout(producer, epoch, timeout_ms, answered)
            # Additions in an earlier epoch that have no answer are refused from now on.
            now, adding = self._changes[name], self._adding.get(name, [])
            self._adding[name] = [each for each in adding if each.changes == now]

    def judge_timeout(
        self, name: str, producer: int, epoch: int, timeout_ms: int, coordinator: Coordinator
    ) -> str | None:
        """Return why the coordinator has a wrong timeout, or ``None``."""
        known = self._timeouts.get(name)
        if known is None or known[:2] != (producer, epoch) or timeout_ms == known.ms:
            return None
        if not coordinator.knows(known.answered):
            return None
        return (
            f"the timeout of producer {producer} with epoch {epoch} is {timeout_ms} ms, but it has "
            f"asked for {known.ms} ms"
        )

    def ends(self, name: str) -> None:
        """An EndTxn arrives."""
        self._changes[name] += 1
        self._open.pop(name, None)

    def adds(self, name: str, now_ns: int) -> Added:
        """A request arrives that adds partitions."""
        adding = self._adding.setdefault(name, [])
        since_ns = min((now_ns, *(each.since_ns for each in adding)))
        added = Added(name, since_ns, self._changes[name])
        adding.append(added)
        return added

    def added(
        self, added: Added, producer: int, epoch: int, answered: Answered | None, *, begins: bool
    ) -> None:
        """Such a request is answered; ``answered`` is None if it was refused.

        begins: whether this transaction was certainly not open when the request arrived.
        """
        name = added.name
        self._adding[name] = [each for each in self._adding[name] if each is not added]
        timeout = self._timeouts.get(name)
        if answered is None or not begins or timeout is None:
            return
        if timeout[:2] == (producer, epoch) and added.changes == self._changes[name]:
            self._open.setdefault(name, _Open(timeout, added.since_ns, answered))

    def judge(
        self, name: str, producer: int, epoch: int, coordinator: Coordinator, now_ns: int
    ) -> str | None:
        """Return why a transaction must still be open, or ``None``.

        producer, epoch: what the coordinator has for the transactional id now. It aborts a
        transaction in the epoch after that of its producer.
        """
        open_ = self._open.get(name)
        if open_ is None or not coordinator.knows(open_.answered):
            return None
        timeout = open_.timeout
        if producer != timeout.producer or epoch <= timeout.epoch:
            return None
        del self._open[name]
        lasted_ms = (now_ns - open_.since_ns) / 1e6
        if lasted_ms >= timeout.ms:
            return None
        return (
            f"the transaction of producer {producer} with epoch {timeout.epoch} was aborted at most"
            f" {lasted_ms:.0f} ms after its begin; its timeout is {timeout.ms} ms"
        )

    def used(self, name: str, at_ns: int, answered: Answered) -> None:
        """A request is acknowledged that changes a transactional id; it arrived at ``at_ns``."""
        known, now = self._used.get(name), (answered.leader_epoch, at_ns)
        if known is None or (known.answered.leader_epoch, known.at_ns) <= now:
            self._used[name] = _Used(at_ns, answered)

    def judge_forgotten(
        self, name: str, coordinator: Coordinator, expiration_ms: int, now_ns: int
    ) -> str | None:
        """Return why a coordinator must know this id, which it does not know, or ``None``."""
        used = self._used.get(name)
        if used is None or not coordinator.knows(used.answered):
            return None
        unused_ms = (now_ns - used.at_ns) / 1e6
        if unused_ms + ROUNDING_MS >= expiration_ms:
            return None
        return (
            f"it is forgotten at most {unused_ms:.0f} ms after its last use, and is kept for "
            f"{expiration_ms} ms"
        )
