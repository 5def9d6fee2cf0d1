"""What operations do: data types whose operations are checked for linearizability.

A model has an initial state, and a step that returns the next state, or says why an operation is
illegal. States are hashable and are never changed. A model of one's own is a class like these.

A value of ``None`` in a result is unknown: it fits every state. So does any result of an operation
that was never completed.
"""

from collections import Counter
from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from checkers.linearizability.operations import Operation
from model.history import BadHistory
from model.text import brief

State = Any
"""A hashable value."""


class Inconsistent(NamedTuple):
    """An operation is illegal in a state."""

    why: str


class Model:
    """A data type. Subclasses have :meth:`step`, and may have more than one :attr:`initial`."""

    initial: State = None
    has_owners: ClassVar[bool] = False
    """Whether it matters which process does an operation."""

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        """Return the state after an operation. Raises :class:`~model.history.BadHistory` for an
        operation that the model does not have."""
        raise NotImplementedError

    @property
    def inner(self) -> "Model":
        """The model of the operations that :meth:`part` returns."""
        return self

    def only_reads(self, operation: Operation) -> bool:
        """Return whether an operation never changes any state."""
        return operation.f in ("read", "get")

    def part(self, operation: Operation) -> tuple[Hashable, Operation]:
        """Return a key, and the operation on that key alone. The operations of each key are judged
        alone, because a history of several objects is linearizable if that of each is."""
        return None, operation


MISFITS = (TypeError, ValueError, LookupError, AttributeError)
"""What a step may raise for a value of another shape than the model's."""


def stepped(model: Model, state: State, operation: Operation) -> State | Inconsistent:
    """Return what the step of a model returns. Raises :class:`~model.history.BadHistory` for an
    operation, or a value, that the model does not have."""
    try:
        return model.step(state, operation)
    except BadHistory:
        raise
    except MISFITS as error:
        value = brief(str(operation.value))
        raise BadHistory(
            f"event {operation.event}: {operation.f} {value} does not fit the model: {error}"
        ) from error


def unknown(operation: Operation, *known: str) -> BadHistory:
    """Return the error for an operation that a model does not have."""
    return BadHistory(
        f"event {operation.event}: {operation.f} is not an operation of this model, which has"
        f" {', '.join(known)}"
    )


def _pair(operation: Operation) -> tuple[Any, Any]:
    value = operation.value
    if not isinstance(value, list | tuple) or len(value) != 2:
        raise BadHistory(f"event {operation.event}: the value of {operation.f} is not a pair")
    return value[0], value[1]


_ATOMS = frozenset((int, str, bool, float, type(None)))
"""Types whose values stay as they are."""


def frozen(value: Any) -> Hashable:
    """Return a value as a hashable one: lists become tuples, and maps become sorted tuples."""
    if type(value) in _ATOMS:
        return value  # type: ignore[no-any-return]
    if isinstance(value, list | tuple):
        return tuple(map(frozen, value))
    if isinstance(value, Mapping):
        return tuple(sorted(((str(k), frozen(v)) for k, v in value.items())))
    return value  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Register(Model):
    """``read`` and ``write`` of one value."""

    initial: State = None

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        if operation.f == "write":
            return frozen(operation.value)
        if operation.f == "read":
            value = frozen(operation.value)
            if operation.is_pending or value is None or value == state:
                return state
            return Inconsistent(f"it read {value}, and the register held {state}")
        raise unknown(operation, "read", "write")


@dataclass(frozen=True)
class CasRegister(Register):
    """A register with ``cas``, whose value is the pair of the expected and the new value."""

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        if operation.f == "cas":
            expected, new = map(frozen, _pair(operation))
            if expected == state:
                return new
            return Inconsistent(f"it replaced {expected} by {new}, and the register held {state}")
        if operation.f in ("read", "write"):
            return super().step(state, operation)
        raise unknown(operation, "read", "write", "cas")


@dataclass(frozen=True)
class MultiRegister(Model):
    """Several registers: each operation reads and writes some of them at once.

    Its value is a list of ``[read | r, key, value]`` and ``[write | w, key, value]``.
    """

    initial: State = ()
    """Pairs of keys and values, sorted by key."""
    default: Hashable = None
    """The value of every other key."""

    def only_reads(self, operation: Operation) -> bool:
        return all(f in ("read", "r") for f, *_ in operation.value or ())

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        values = dict(state)
        for f, key, value in operation.value or ():
            held, said = values.get(key, self.default), frozen(value)
            if f in ("write", "w"):
                values[key] = said
            elif f not in ("read", "r"):
                raise unknown(operation, "read", "write")
            elif said is not None and not operation.is_pending and said != held:
                return Inconsistent(f"it read {said} of {key}, which held {held}")
        return tuple(sorted(values.items(), key=lambda item: str(item[0])))


@dataclass(frozen=True)
class KeyValue(Model):
    """``get``, ``put`` and ``append`` of texts, whose values are pairs of a key and a text."""

    initial: State = ""

    def part(self, operation: Operation) -> tuple[Hashable, Operation]:
        key, value = _pair(operation)
        return frozen(key), operation._replace(value=value)

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        value = frozen(operation.value)
        if operation.f == "put":
            return value
        if operation.f == "append":
            return f"{state}{value}"
        if operation.f == "get":
            if operation.is_pending or value is None or value == state:
                return state
            return Inconsistent(f"it got {value!r}, and the key held {state!r}")
        raise unknown(operation, "get", "put", "append")


@dataclass(frozen=True)
class Keyed(Model):
    """Many objects of one model: values are pairs of a key and the value for that object."""

    of: Model

    @property
    def inner(self) -> Model:
        return self.of.inner

    def part(self, operation: Operation) -> tuple[Hashable, Operation]:
        key, value = _pair(operation)
        inner, alone = self.of.part(operation._replace(value=value))
        return (frozen(key), inner), alone


@dataclass(frozen=True)
class Set(Model):
    """``add`` and ``remove`` of an element, and ``read`` of all elements, each once."""

    initial: State = frozenset()

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        assert isinstance(state, frozenset)
        value = frozen(operation.value)
        if operation.f == "add":
            return state | {value}
        if operation.f == "remove":
            return state - {value}
        if operation.f != "read":
            raise unknown(operation, "add", "remove", "read")
        if operation.is_pending or value is None:
            return state
        elements = Counter(_listed(value))
        twice = [element for element, count in elements.items() if count > 1]
        if twice:
            return Inconsistent(f"it read {twice[0]} twice")
        for wrong, what in (
            (state - elements.keys(), "without"),
            (elements.keys() - state, "with"),
        ):
            if wrong:
                return Inconsistent(f"it read the set {what} {_some(wrong)}")
        return state


def _listed(value: Hashable) -> tuple[Hashable, ...]:
    if not isinstance(value, tuple):
        raise TypeError("it is not a list")
    return value


def _some(elements: Any) -> str:
    """Name one element of a set, and how many others there are."""
    first, *others = sorted(elements, key=lambda each: (str(type(each)), each))
    return f"{first}" + (f" and {len(others)} more elements" if others else "")


@dataclass(frozen=True)
class Counting(Model):
    """``add`` of a number (also negative), ``increment``, ``decrement``, and ``read``."""

    initial: State = 0
    signs: ClassVar[Mapping[str, int]] = {
        "add": 1, "increment": 1, "inc": 1, "decrement": -1, "dec": -1, "read": 0,
    }  # fmt: skip

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        value, sign = operation.value, self.signs.get(operation.f)
        if sign is None:
            raise unknown(operation, "add", "increment", "decrement", "read")
        if value is not None and type(value) is not int:
            raise TypeError("it is not a whole number")
        if sign:
            return state + sign * (1 if value is None else value)
        if operation.is_pending or value is None or value == state:
            return state
        return Inconsistent(f"it read {value}, and the counter was {state}")


EMPTY = "empty"
"""The result of a ``dequeue`` or ``pop`` that found nothing."""


@dataclass(frozen=True)
class FifoQueue(Model):
    """``enqueue`` and ``dequeue``, first in, first out. A dequeue of ``empty`` found nothing."""

    initial: State = ()
    puts: ClassVar[tuple[str, ...]] = ("enqueue", "enq")
    takes: ClassVar[tuple[str, ...]] = ("dequeue", "deq")
    end: ClassVar[int] = 0
    """The place from which elements are taken."""

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        assert isinstance(state, tuple)
        value = frozen(operation.value)
        if operation.f in self.puts:
            return (*state, value)
        if operation.f not in self.takes:
            raise unknown(operation, self.puts[0], self.takes[0])
        is_known = not operation.is_pending and value is not None
        if not state:
            if is_known and value != EMPTY:
                return Inconsistent(f"it took {value}, and there was no element")
            return state
        if is_known and value == EMPTY:
            return Inconsistent(f"it found no element, and {state[self.end]} was to be taken")
        if is_known and value != state[self.end]:
            return Inconsistent(f"it took {value}, and {state[self.end]} was to be taken")
        return state[1:] if self.end == 0 else state[:-1]


@dataclass(frozen=True)
class Stack(FifoQueue):
    """``push`` and ``pop``, last in, first out. A pop of ``empty`` found nothing."""

    puts: ClassVar[tuple[str, ...]] = ("push",)
    takes: ClassVar[tuple[str, ...]] = ("pop",)
    end: ClassVar[int] = -1


@dataclass(frozen=True)
class UnorderedQueue(Model):
    """``enqueue`` and ``dequeue`` in any order."""

    initial: State = ()
    """The elements, sorted by their texts."""

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        assert isinstance(state, tuple)
        value = frozen(operation.value)
        if operation.f == "enqueue":
            return tuple(sorted((*state, value), key=str))
        if operation.f != "dequeue":
            raise unknown(operation, "enqueue", "dequeue")
        if operation.is_pending or value is None:
            return state
        if value == EMPTY:
            return Inconsistent("it found no element") if state else state
        if value not in state:
            return Inconsistent(f"it took {value}, which was not there")
        place = state.index(value)
        return state[:place] + state[place + 1 :]


@dataclass(frozen=True)
class Mutex(Model):
    """``acquire`` and ``release`` of a lock, whichever process does it."""

    initial: State = False

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        if operation.f not in ("acquire", "release"):
            raise unknown(operation, "acquire", "release")
        acquires = operation.f == "acquire"
        if acquires == state:
            return Inconsistent("the lock was held" if state else "the lock was not held")
        return acquires


@dataclass(frozen=True)
class OwnedMutex(Model):
    """``acquire`` and ``release`` of a lock by processes, at most ``depth`` times by its owner.

    An ``acquire`` with a number got that fencing token, and tokens must increase.
    """

    depth: int = 1
    initial: State = (None, 0, None)
    """The owner, how often it has acquired the lock, and the last fencing token."""
    has_owners: ClassVar[bool] = True

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        owner, count, token = state
        process = operation.process
        if operation.f == "release":
            if owner != process:
                return Inconsistent(_held_by(owner))
            return (owner if count > 1 else None, count - 1, token)
        if operation.f != "acquire":
            raise unknown(operation, "acquire", "release")
        if count and owner != process:
            return Inconsistent(_held_by(owner))
        if count >= self.depth:
            return Inconsistent(f"its owner had acquired the lock {count} times")
        got = operation.value if isinstance(operation.value, int) else None
        if operation.is_pending or got is None:
            return (process, count + 1, token)
        if token is not None and (got < token or (got == token and not count)):
            return Inconsistent(f"it got the fencing token {got} after {token}")
        return (process, count + 1, got)


def _held_by(owner: Hashable) -> str:
    return "the lock was not held" if owner is None else f"process {owner} held the lock"


@dataclass(frozen=True)
class UniqueIds(Model):
    """``generate`` returns an id that no other one returned."""

    initial: State = frozenset()

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        assert isinstance(state, frozenset)
        if operation.f != "generate":
            raise unknown(operation, "generate")
        value = frozen(operation.value)
        if operation.is_pending or value is None:
            return state
        return Inconsistent(f"{value} was generated before") if value in state else state | {value}


@dataclass(frozen=True)
class Bank(Model):
    """``transfer`` of ``{from, to, amount}`` and ``read`` of all balances ``{account: amount}``."""

    initial: State = ()
    """Pairs of accounts, as texts, and balances, sorted."""
    allows_negative: bool = False

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        balances: dict[str, int] = dict(state)
        value = operation.value
        if operation.f == "read":
            if operation.is_pending or value is None:
                return state
            for account, amount in value.items():
                held = balances.get(str(account), 0)
                if held != amount:
                    return Inconsistent(f"it read {amount} in account {account}, which had {held}")
            return state
        if operation.f != "transfer":
            raise unknown(operation, "transfer", "read")
        giver, taker = str(value["from"]), str(value["to"])
        balances[giver] = balances.get(giver, 0) - value["amount"]
        balances[taker] = balances.get(taker, 0) + value["amount"]
        if balances[giver] < 0 and not self.allows_negative:
            return Inconsistent(f"account {giver} would have {balances[giver]}")
        return tuple(sorted(balances.items()))


@dataclass(frozen=True)
class Log(Model):
    """``append`` of an element, and ``read`` of all elements in their order."""

    initial: State = ()

    def step(self, state: State, operation: Operation) -> State | Inconsistent:
        assert isinstance(state, tuple)
        value = frozen(operation.value)
        if operation.f == "append":
            return (*state, value)
        if operation.f != "read":
            raise unknown(operation, "append", "read")
        if operation.is_pending or value is None or _listed(value) == state:
            return state
        return Inconsistent(f"it read {len(operation.value)} elements of {len(state)}, or others")
