"""Deletes records from time to time: those of a partition before some offset.

The offset is at most the end that acknowledgements and reads have shown, or a little beyond it. An
offset beyond it may not be committed yet; the leader then rejects the request.
"""

from collections.abc import Iterator, Mapping

import msgspec

from model.generator import PENDING, Answer, Context, Generator, Invocation, Stagger
from model.op import Op
from model.plan import Plan

AHEAD_MAX = 8
"""The largest distance of an offset beyond the known end."""
DELETIONS: Mapping[str, float] = {
    "deletes_hz": 0.0,
    "deletes_all_p": 0.0,
    "deletes_ahead_p": 0.0,
}
"""The smallest number of each option about deleted records, which only some workloads have."""
DELETES_HZ = (0.0, 0.0, 0.0, 0.15, 0.5)
"""The rates from which a search chooses."""


class Deleters(msgspec.Struct, frozen=True):
    """Requests the deletion of a part of a partition's records."""

    all_p: float
    """The probability that all known records are deleted."""
    ahead_p: float
    """The probability that an offset beyond the known end is requested."""
    ends: Mapping[str, int] = msgspec.field(default_factory=dict)
    """The offset after the last record that was acknowledged or read, by partition."""
    asked: Mapping[str, int] = msgspec.field(default_factory=dict)
    """The offset before which records may be deleted, by partition."""

    def op(self, ctx: Context) -> Answer:
        keys = [key for key, end in self.ends.items() if end > self.asked.get(key, 0)]
        if not keys or not ctx.free:
            return PENDING, self
        key = ctx.rng.choice(keys)
        end = self.ends[key]
        how = ctx.rng.random()
        offset = ctx.rng.randint(self.asked.get(key, 0) + 1, end)
        if how < self.ahead_p:
            offset = end + ctx.rng.randint(1, AHEAD_MAX)
        elif how < self.ahead_p + self.all_p:
            offset = end
        process = ctx.rng.choice(ctx.free)
        value = [["delete-records", key, offset]]
        return Invocation(process=process, f="delete-records", value=value), self

    def update(self, event: Op) -> Generator:
        if event.f == "delete-records" and event.type in ("ok", "info"):
            _, key, offset, *_ = event.value[0]
            asked = {**self.asked, key: max(offset, self.asked.get(key, 0))}
            return msgspec.structs.replace(self, asked=asked)
        ends = {key: end for key, end in _reported_ends(event) if end > self.ends.get(key, 0)}
        return msgspec.structs.replace(self, ends={**self.ends, **ends}) if ends else self


def _reported_ends(event: Op) -> Iterator[tuple[str, int]]:
    """Yield the partitions of records in this event, with the offsets after the records."""
    if event.type == "invoke" or event.f not in ("send", "poll") or not event.value:
        return
    for micro_op in event.value:
        match micro_op:
            case ["send", str(key), [int(offset), _]]:
                yield key, offset + 1
            case ["poll", dict(polled)]:
                for key, records in polled.items():
                    if records:
                        yield key, records[-1][0] + 1
            case _:
                pass


def deleting(plan: Plan) -> tuple[Generator, ...]:
    """Return the generator that deletes records, if the plan has deletions."""
    rate_hz = float(plan.options["deletes_hz"])
    all_p, ahead_p = (float(plan.options[name]) for name in ("deletes_all_p", "deletes_ahead_p"))
    deleters = Deleters(all_p, ahead_p)
    return (Stagger(1 / rate_hz, deleters, next_s=1 / rate_hz),) if rate_hz else ()
