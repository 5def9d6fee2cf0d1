"""Generates executions of objects: valid ones, and ones with a contradiction.

Each operation takes effect at one moment between its invocation and its completion, so that an
execution is linearizable. One that crashes takes effect at any later time, or never.
"""

from random import Random
from typing import Any, NamedTuple

from bench.adversarial.objects import FAILED, KINDS, Asked, Draw, Kind
from model.op import Op, OpType


class Shape(NamedTuple):
    """What an execution is like."""

    kind: str
    operations: int
    clients: int
    crashed: float = 0.0
    """The share of updates that crash."""
    values: int = 3
    """How many different values are written; 0 if every value is written once."""
    spoiled: str = ""
    """A contradiction: ``impossible`` for a result that no execution has, ``order`` for operations
    of one client whose results contradict each other; none if it is empty."""

    @property
    def name(self) -> str:
        """The shape in words."""
        parts = [f"{self.kind}, {self.operations:,} operations of {self.clients} clients"]
        if self.crashed:
            parts.append(f"{self.crashed:.0%} of the updates crashed")
        parts.append(f"{self.values} values" if self.values else "unique values")
        return ", ".join([*parts, self.spoiled or "valid"])


class _Client:
    """A client and its operation."""

    def __init__(self, process: int) -> None:
        self.process = process
        self.asked: Asked | None = None
        self.result: Any = None
        self.has_effect = False


class _Execution:
    def __init__(self, kind: Kind, shape: Shape, rng: Random) -> None:
        self.kind, self.shape, self.rng = kind, shape, rng
        self.state = kind.initial
        self.events: list[Op] = []
        self.clients = [_Client(process) for process in range(shape.clients)]
        self.invoked = 0
        self._crashed: list[Asked] = []
        self._processes = shape.clients

    def note(self, process: int, kind: OpType, f: str, value: Any) -> None:
        """Record an event."""
        place = len(self.events)
        event = Op(index=place, time_ns=place, process=process, type=kind, f=f, value=value)
        self.events.append(event)

    def apply(self, asked: Asked) -> Any:
        """Let an operation take effect."""
        self.state, result = self.kind.answer(self.state, asked)
        return result

    def step(self) -> None:
        """Continue one client, or let a crashed operation take effect."""
        rng = self.rng
        if self._crashed and rng.random() < 0.02:
            self.apply(self._crashed.pop(rng.randrange(len(self._crashed))))
        client = rng.choice(self.clients)
        if client.asked is None:
            draw = Draw(rng, self.invoked, self.shape.values, self.state)
            client.asked, client.has_effect = self.kind.ask(draw), False
            self.invoked += 1
            self.note(client.process, "invoke", *client.asked)
        elif not client.has_effect:
            if client.asked[0] in self.kind.updates and rng.random() < self.shape.crashed:
                self._crash(client, client.asked)
            else:
                client.result, client.has_effect = self.apply(client.asked), True
        else:
            failed = client.result is FAILED
            value = client.asked[1] if failed else client.result
            self.note(client.process, "fail" if failed else "ok", client.asked[0], value)
            client.asked = None

    def _crash(self, client: _Client, asked: Asked) -> None:
        self.note(client.process, "info", *asked)
        if self.rng.random() < 0.5:
            self._crashed.append(asked)
        client.asked, client.process = None, self.new_process()

    def new_process(self) -> int:
        """Return a process that did nothing yet."""
        self._processes += 1
        return self._processes - 1

    def spoil(self) -> None:
        """Record operations of one more client whose results no order explains."""
        process = self.new_process()
        is_order = self.shape.spoiled == "order"
        for f, value in self.kind.wrong_order if is_order else (self.kind.impossible,):
            asked = [value[0], None] if f == "get" else None
            self.note(process, "invoke", f, value if f in self.kind.updates else asked)
            self.note(process, "ok", f, value)


def generate(shape: Shape, seed: object = 0) -> list[Op]:
    """Return the events of an execution. Those with a contradiction have it after four fifths."""
    rng = Random(f"{shape} {seed}")
    found = _Execution(KINDS[shape.kind], shape, rng)
    while found.invoked < shape.operations:
        found.step()
        if shape.spoiled and found.invoked == shape.operations * 4 // 5:
            found.spoil()
            found.invoked += 1
    return found.events
