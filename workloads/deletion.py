"""Deletes records now and then: those of a partition that lie before an offset which is known from
acknowledgements and reads, or will be soon.

One that lies ahead of all that is known may not be committed yet, and is refused then.
"""

from collections.abc import Iterator, Mapping

import msgspec

from model.generator import PENDING, Answer, Context, Generator, Invocation
from model.op import Op

AHEAD_MAX = 8
"""How many offsets more, at most."""


class Deleters(msgspec.Struct, frozen=True):
    """Asks for the deletion of a part of what a partition holds."""

    all_p: float
    """How often everything that is known is to go."""
    ahead_p: float
    """How often more than that."""
    ends: Mapping[str, int] = msgspec.field(default_factory=dict)
    """By key: behind the last record that was acknowledged or read."""
    asked: Mapping[str, int] = msgspec.field(default_factory=dict)
    """By key: up to where records may be gone."""

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
        ends = {key: end for key, end in _told(event) if end > self.ends.get(key, 0)}
        return msgspec.structs.replace(self, ends={**self.ends, **ends}) if ends else self


def _told(event: Op) -> Iterator[tuple[str, int]]:
    """Keys and the offsets behind records that this event tells of."""
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
