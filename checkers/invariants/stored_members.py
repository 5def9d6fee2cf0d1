"""Which members a coordinator must have after it has loaded their group.

- ``members-as-stored``: members learn their assignment, and a static member that comes again its
  new id, only when the log has them. So another coordinator has the same members in the same
  generation, and the static member that came last (KIP-345). If it has the former one instead, it
  fences the member that has joined, and accepts the requests of a process that was replaced. It has
  the timeouts, the subscription and the assignment of each member as well, and the topics that are
  in use: without them, it deletes offsets that are needed (KIP-211, KIP-496). No coordinator goes
  back to an earlier generation of these members, nor to the members of a group that has lost all:
  that is stored, too, or the next members wait for those that have left. A group whose deletion was
  acknowledged does not come back, unless members join it again (KIP-229).

Only what is certain is judged. A static member whose join is not acknowledged has perhaps replaced
the former one, and a join that failed may still take effect with the next coordinator. Which topics
a group with static members uses depends on when the coordinator has computed it, so they are not
compared. Coordinators that cannot know what was acknowledged are not judged: their logs lack the
last record of that moment, as that of a replaced coordinator, or after a power loss.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from checkers.invariants.coordinated import STABLE, Group
from checkers.invariants.deleted_offsets import LastRecord

EpochAt = Callable[[int], int | None]
"""Returns the leader epoch of the record at an offset of a coordinator's log; None: it has none."""


class Details(NamedTuple):
    """What the record of a group says of a member, besides its ids."""

    session_ms: int
    rebalance_ms: int
    subscription: bytes
    assignment: bytes


class Content(NamedTuple):
    """What the record of a group determines, besides the ids of its members."""

    details: Mapping[str, Details]
    """By member id."""
    topics: frozenset[str] | None
    """The topics that the group is subscribed to; None if they are not known."""


NO_CONTENT: Final = Content({}, None)


class _Known(NamedTuple):
    """What was acknowledged in a generation of a group."""

    generation: int
    dynamic: frozenset[str]
    holders: Mapping[str, str]
    """The member with each instance id."""
    last: LastRecord
    """The last record that was committed in the coordinator's log then."""
    content: Content = NO_CONTENT
    has_ended: bool = False
    """Whether the members are those of the generation before, and the group has none."""


def _earlier(known: _Known, group: Group) -> str | None:
    """Return how a group went back to an earlier generation, or ``None``.

    Another group of the same name has low numbers of generations again, and other members.
    """
    common = sorted({*known.dynamic, *known.holders.values()} & set(group.members))
    if group.generation > known.generation or not common:
        return None
    if known.has_ended:
        return (
            f"it is in generation {group.generation} with {common[0]}, and has lost all members in "
            f"{known.generation}"
        )
    return f"it is in generation {group.generation}, and {common[0]} was in {known.generation}"


class _Deleted(NamedTuple):
    """A group whose deletion was acknowledged, and that no member has joined since."""

    epoch: int
    """The leader epoch of the coordinator."""
    last: LastRecord


class StoredMembers:
    """What all coordinators of a run have acknowledged to the members of groups."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._epochs: dict[str, int] = {}
        """The highest leader epoch of a coordinator that has handled a request, by group."""
        self._unsure: dict[str, dict[str, int]] = {}
        """The instance ids whose member may be another one since a join in this generation."""
        self._deleted: dict[str, _Deleted] = {}
        self._joins: Counter[str] = Counter()
        self._assigned: dict[str, tuple[int, int]] = {}
        """By group, a generation and how often its leader has sent assignments."""

    @property
    def names(self) -> tuple[str, ...]:
        """The groups of which something is known."""
        return tuple(dict.fromkeys((*self._known, *self._deleted)))

    def assigns(self, name: str, generation: int) -> None:
        """The leader of a generation sends assignments.

        If it does so again, members receive those that are stored first, and the next coordinator
        loads those that are stored last.
        """
        known, times = self._assigned.get(name, (generation, 0))
        self._assigned[name] = generation, (times + 1 if known == generation else 1)

    def begins(self, name: str) -> None:
        """A JoinGroup arrives, with which a group of this name may begin."""
        self._joins[name] += 1
        self._deleted.pop(name, None)

    def joined(self, name: str) -> int:
        """Return how many JoinGroup requests for a group have arrived."""
        return self._joins[name]

    def deleted(self, name: str, epoch: int, last: LastRecord, joined: int) -> None:
        """The deletion of a group is acknowledged.

        joined: how many JoinGroup requests had arrived before the deletion was asked for.
        """
        if joined == self._joins[name]:
            self._deleted[name] = _Deleted(epoch, last)

    def joins(self, name: str, instance: str, generation: int) -> None:
        """A coordinator handles a JoinGroup that may replace the member with an instance id."""
        self._unsure.setdefault(name, {})[instance] = generation

    def acknowledged(
        self,
        name: str,
        epoch: int,
        group: Group,
        last: LastRecord,
        instance: str | None = None,
        content: Content = NO_CONTENT,
    ) -> None:
        """A stable group has answered a SyncGroup, or the join of its member with ``instance``."""
        if epoch < self._epochs.get(name, epoch):
            return
        since = group.generation
        self._epochs[name] = epoch
        self._known[name] = _Known(
            since,
            frozenset(member for member, own in group.members.items() if own is None),
            {own: member for member, own in group.members.items() if own is not None},
            last,
            content,
        )
        self._unsure[name] = {
            each: joined
            for each, joined in self._unsure.get(name, {}).items()
            if joined >= since and each != instance
        }

    def emptied(
        self, name: str, epoch: int, group: Group, members: Iterable[str], last: LastRecord
    ) -> None:
        """The record of a group that has lost these members, its last ones, is committed."""
        known = self._known.get(name)
        is_earlier = known is not None and known.generation > group.generation
        if is_earlier or epoch < self._epochs.get(name, epoch):
            return
        self._epochs[name] = epoch
        self._known[name] = _Known(group.generation, frozenset(members), {}, last, has_ended=True)

    def judge(
        self,
        name: str,
        epoch: int,
        group: Group | None,
        epoch_at: EpochAt,
        content: Content = NO_CONTENT,
    ) -> str | None:
        """Return how a group differs from what was acknowledged, or ``None``.

        epoch: the leader epoch of the coordinator, which has loaded the group. group: None if there
        is no such group, because it was deleted.
        """
        if epoch < self._epochs.get(name, epoch):
            return None
        self._epochs[name] = epoch
        deleted = self._deleted.get(name)
        # A commit without a member begins a group that has no generation.
        if deleted is not None and group is not None and group.generation > 0:
            del self._deleted[name]
            if epoch >= deleted.epoch and epoch_at(deleted.last.offset) == deleted.last.epoch:
                return f"it is back in generation {group.generation}, although it was deleted"
        known = self._known.get(name)
        if known is None:
            return None
        is_complete = epoch_at(known.last.offset) == known.last.epoch
        if not is_complete or group is None or group.generation != known.generation:
            del self._known[name]
            return _earlier(known, group) if is_complete and group is not None else None
        if known.has_ended or group.state != STABLE:
            return None
        return self._differs(name, known, group) or self._contents(name, known, group, content)

    def _differs(self, name: str, known: _Known, group: Group) -> str | None:
        prefix = f"in generation {group.generation}"
        dynamic = frozenset(member for member, own in group.members.items() if own is None)
        if dynamic != known.dynamic:
            return f"{prefix} it has members {sorted(dynamic)}, and had {sorted(known.dynamic)}"
        instances = {own for own in group.members.values() if own is not None}
        if instances != set(known.holders):
            were = sorted(known.holders)
            return f"{prefix} it has static members {sorted(instances)}, and had {were}"
        unsure = self._unsure.get(name, {})
        for instance, member in known.holders.items():
            holder = group.holder(instance)
            if holder != member and unsure.get(instance) != group.generation:
                return f"{prefix} member {holder} has instance id {instance}, which {member} had"
        return None

    def _contents(self, name: str, known: _Known, group: Group, now: Content) -> str | None:
        """Return how the members, which are the acknowledged ones, have other data, or ``None``."""
        prefix = f"in generation {group.generation}"
        unsure = self._unsure.get(name, {})
        generation, times = self._assigned.get(name, (group.generation, 0))
        is_doubtful = generation == group.generation and times > 1
        for member, was in known.content.details.items():
            own, has = group.members.get(member), now.details.get(member)
            if has is None or (own is not None and unsure.get(own) == group.generation):
                continue
            for field, before, after in zip(Details._fields, was, has, strict=True):
                if before != after and not (field == "assignment" and is_doubtful):
                    what = field.replace("_", " ")
                    return f"{prefix} member {member} has {what} {after!r}, and had {before!r}"
        topics = known.content.topics
        if known.holders or None in (topics, now.topics) or topics == now.topics:
            return None
        return f"{prefix} it has topics {sorted(now.topics or ())}, and had {sorted(topics or ())}"
