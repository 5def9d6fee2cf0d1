"""Reads partitions: all that exist during the run, and each to its end after it."""

import msgspec

from model.generator import PENDING, Answer, Context, Generator, Invocation, Until
from model.op import Op
from model.plan import Plan
from workloads.common.partitions import created

WATCH_SHARE = 0.25
"""How often a reader whose poll returned nothing requests watermarks.

Otherwise it checks whether it has caught up.
"""


class Readers(msgspec.Struct, frozen=True):
    """Reads every existing partition: assigns new partitions to each process, and polls."""

    keys: tuple[str, ...] = ()
    assigned: dict[int, tuple[str, ...]] = msgspec.field(default_factory=dict)
    """The partitions of each live process."""

    def op(self, ctx: Context) -> Answer:
        if not self.keys or not ctx.free:
            return PENDING, self
        process = ctx.rng.choice(ctx.free)
        if self.assigned.get(process) != self.keys:
            return Invocation(process=process, f="assign", value=list(self.keys)), self
        return Invocation(process=process, f="poll", value=[["poll"]]), self

    def update(self, event: Op) -> Generator:
        if new := created(event):
            return msgspec.structs.replace(self, keys=(*self.keys, *new))
        if event.f == "assign" and event.type == "ok":
            assigned = self.assigned | {event.process: tuple(event.value)}
            return msgspec.structs.replace(self, assigned=assigned)
        if event.type == "info" and event.process in self.assigned:
            assigned = {p: keys for p, keys in self.assigned.items() if p != event.process}
            return msgspec.structs.replace(self, assigned=assigned)
        return self


class CatchUp(msgspec.Struct, frozen=True):
    """Reads partitions from the log start, until each high watermark was reached by some process.

    When a poll has returned nothing, the process checks whether it has reached the high watermark.
    A process that replaces a crashed one starts with its own assignment.
    """

    left: tuple[str, ...]
    """Partitions whose high watermark no process has reached."""
    keys: tuple[str, ...]
    assigned: frozenset[int] = frozenset()
    """Processes with an assignment; used for membership tests only."""
    idle: frozenset[int] = frozenset()
    """Processes whose last poll returned nothing."""
    watches: bool = False
    """Whether watermarks are requested too. They show why a reader cannot catch up."""

    def op(self, ctx: Context) -> Answer:
        if not self.left:
            return None, self
        if not ctx.free:
            return PENDING, self
        process = ctx.rng.choice(ctx.free)
        if process not in self.assigned:
            return Invocation(process=process, f="assign", value=list(self.keys)), self
        if process not in self.idle:
            return Invocation(process=process, f="poll", value=[["poll"]]), self
        key = ctx.rng.choice(self.left)
        if self.watches and ctx.rng.random() < WATCH_SHARE:
            return Invocation(process=process, f="watermarks", value=[["watermarks", key]]), self
        value = [["catch-up", key]]
        return Invocation(process=process, f="catch-up", value=value), self

    def update(self, event: Op) -> Generator:
        process = frozenset({event.process})
        match event.f, event.type:
            case "assign", "ok":
                return msgspec.structs.replace(self, assigned=self.assigned | process)
            case "poll", "ok":
                *_, (_, polled) = event.value  # the poll follows the rebalances of a member
                brought = any(polled.values())
                idle = self.idle - process if brought else self.idle | process
                return msgspec.structs.replace(self, idle=idle)
            case "catch-up", "ok":
                left = tuple(key for key in self.left if key != event.value[0][1])
                return msgspec.structs.replace(self, left=left)
            case "catch-up", "fail":
                return msgspec.structs.replace(self, idle=self.idle - process)
            case _:
                return self


class Watchers(msgspec.Struct, frozen=True):
    """Requests the watermarks of a partition."""

    keys: tuple[str, ...] = ()

    def op(self, ctx: Context) -> Answer:
        if not self.keys or not ctx.free:
            return PENDING, self
        value = [["watermarks", ctx.rng.choice(self.keys)]]
        return Invocation(process=ctx.rng.choice(ctx.free), f="watermarks", value=value), self

    def update(self, event: Op) -> Generator:
        new = created(event)
        return msgspec.structs.replace(self, keys=(*self.keys, *new)) if new else self


def read_to_ends(plan: Plan, keys: tuple[str, ...], until_s: float) -> Generator:
    """Read these partitions to their ends, with every thread."""
    return Until(until_s, CatchUp(left=keys, keys=keys, watches=True))
