"""How long a coordinator waits for the members of a group, by its own clock.

- ``removed-after-timeout``: a member whose session lasts, and that does not leave, is removed only
  if it does not join for its own rebalance timeout after a rebalance has begun: rebalances wait for
  the longest timeout of any member (KIP-62). A static member is not even removed then (KIP-345). A
  member may also be removed that does not send SyncGroup for so long. A member that waits for a
  rebalance is not silent: its session begins when its JoinGroup is answered.
- ``rebalance-in-time``: a rebalance that some members have joined ends once the longest timeout of
  its members has passed, and a member that has not sent SyncGroup by then is removed (KAFKA-12890).

The group is seen when requests arrive, and changes only then, or when a time-out ends. So what is
known of the beginning of a rebalance is that it did not last when another state was seen.
"""

from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from checkers.invariants.coordinated import COMPLETING, PREPARING, STABLE

NEVER: Final = float("-inf")
ROUNDING_S: Final = 1e-6
LATE_S: Final = 0.1
"""For how long a time-out that has ended must be seen: after a pause of the broker, requests may
arrive before it notices that a time-out has ended."""


class Timed(NamedTuple):
    """A member with its timeouts."""

    instance: str | None
    session_s: float
    rebalance_s: float
    has_joined: bool = False
    """Whether its JoinGroup waits for a rebalance to end."""


class Sight(NamedTuple):
    """A group when a request arrives; the time is that of the coordinator's clock."""

    at_s: float
    state: str
    generation: int
    members: Mapping[str, Timed]


class Found(NamedTuple):
    """A broken invariant: ``rebalance-in-time`` if it is late, else ``removed-after-timeout``."""

    is_late: bool
    why: str


class Rebalances:
    """A group of one coordinator since it was created or loaded."""

    def __init__(self, initial_delay_s: float) -> None:
        """initial_delay_s: how long the first rebalance lasts at least."""
        self._last: Sight | None = None
        self._alive: dict[str, float] = {}
        self._answered: dict[str, float] = {}
        """The dynamic members whose JoinGroup was answered, and when it was last seen waiting."""
        self._left: set[str] = set()
        self._longest_s = initial_delay_s
        self._before_rebalance_s = NEVER
        """When the group was last seen without a rebalance in preparation."""
        self._before_generation_s = NEVER
        """When the group was last seen before the current generation began."""
        self._joined: tuple[int, float] | None = None
        """The generation in which members wait in a rebalance, and when they were first seen."""
        self._unsynced: dict[str, None] = {}
        """The members that have not sent SyncGroup in the current generation."""
        self._unassigned: dict[str, None] = {}
        """The members that have perhaps no assignment in the current generation."""
        self._began_s: float | None = None
        """When the current generation was first seen; None: it was seen too late."""
        self._late_since_s: float | None = None

    def joins(self, rebalance_s: float) -> None:
        """A member joins with this timeout."""
        self._longest_s = max(self._longest_s, rebalance_s)

    def beats(self, member: str, at_s: float) -> None:
        """A heartbeat of a member arrived at this time, and was accepted."""
        self._alive[member] = max(self._alive.get(member, NEVER), at_s)

    def syncs(self, member: str) -> None:
        """A SyncGroup of the current generation arrived."""
        self._unsynced.pop(member, None)

    def assigned(self, member: str, generation: int) -> None:
        """A member received its assignment in a generation."""
        if self._last is not None and self._last.generation == generation:
            self._unassigned.pop(member, None)

    def leaves(self, member: str) -> None:
        """A member leaves, or is removed by a tool."""
        self._left.add(member)

    def look(self, now: Sight) -> Iterator[Found]:
        """Compare the group with how it was seen before."""
        last = self._last
        if last is not None:
            yield from self._removed(last, now)
        for member in now.members.values():
            self.joins(member.rebalance_s)
        self._follow(last, now)
        yield from self._late(now)
        self._last = now

    def _follow(self, last: Sight | None, now: Sight) -> None:
        if now.state != PREPARING:
            self._before_rebalance_s = now.at_s
        if now.state == PREPARING and any(each.has_joined for each in now.members.values()):
            if self._joined is None or self._joined[0] != now.generation:
                self._joined = now.generation, now.at_s
        else:
            self._joined = None
        if now.state not in (COMPLETING, STABLE):
            self._unsynced = self._unassigned = {}
        elif last is None or last.state == PREPARING or last.generation != now.generation:
            self._before_generation_s = NEVER if last is None else last.at_s
            self._note_answers(last, now)
            self._began_s = now.at_s if now.state == COMPLETING else None
            # A group that is stable at first was loaded, and its members have their assignments.
            is_loaded = last is None and now.state == STABLE
            self._unsynced = {} if is_loaded else dict.fromkeys(now.members)
            self._unassigned = dict(self._unsynced)

    def _note_answers(self, last: Sight | None, now: Sight) -> None:
        """A generation has begun since the last sight, and its members have their answers."""
        if last is None:
            return
        for name, member in last.members.items():
            if member.has_joined and member.instance is None and name in now.members:
                self._answered[name] = last.at_s

    def _removed(self, last: Sight, now: Sight) -> Iterator[Found]:
        instances = {each.instance for each in now.members.values()}
        for name, member in last.members.items():
            if name in now.members or name in self._left:
                continue
            if member.instance is not None and member.instance in instances:
                continue  # another one has replaced it
            answered_s = self._answered.get(name, NEVER)
            if member.has_joined and member.instance is None:
                answered_s = last.at_s
            silent_s = now.at_s - max(self._alive.get(name, NEVER), answered_s)
            # A rebalance does not remove a static member, but the generation after it may.
            begun = [last.at_s if member.instance is not None else self._before_rebalance_s]
            if name in self._unassigned:
                begun.append(self._before_generation_s)
            waited_s = now.at_s - max(min(begun), answered_s)
            if silent_s < member.session_s and waited_s + ROUNDING_S < member.rebalance_s:
                why = (
                    f"{name} was removed at most {silent_s:.3f} s after its last sign of life, and "
                    f"after a wait of at most {waited_s:.3f} s; its session lasts "
                    f"{member.session_s:g} s, and its rebalance timeout is {member.rebalance_s:g} s"
                )
                yield Found(False, why)

    def _late(self, now: Sight) -> Iterator[Found]:
        """Find what should have ended, and has not ended after a while."""
        why = self._overdue(now)
        if why is None:
            self._late_since_s = None
        elif self._late_since_s is None:
            self._late_since_s = now.at_s
        elif now.at_s - self._late_since_s > LATE_S:
            yield Found(True, why)

    def _overdue(self, now: Sight) -> str | None:
        until = f"the longest timeout is {self._longest_s:g} s"
        if self._joined is not None and now.at_s - self._joined[1] > self._longest_s:
            lasts_s = now.at_s - self._joined[1]
            return f"a rebalance that members have joined lasts for {lasts_s:.3f} s; {until}"
        unsynced = [name for name in self._unsynced if name in now.members]
        began_s = now.at_s if self._began_s is None else self._began_s
        lasts_s = now.at_s - began_s
        if unsynced and lasts_s > self._longest_s:
            return f"{unsynced[0]} has not sent SyncGroup for {lasts_s:.3f} s; {until}"
        return None
