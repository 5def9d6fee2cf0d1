"""Which members a coordinator must have after it has loaded their group.

- ``members-as-stored``: members learn their assignment, and a static member that comes again its
  new id, only when the log has them. So another coordinator has the same members in the same
  generation, and the static member that came last (KIP-345). If it has the former one instead, it
  fences the member that has joined, and accepts the requests of a process that was replaced. No
  coordinator goes back to an earlier generation of these members.

Only what is certain is judged. A static member whose join is not acknowledged has perhaps replaced
the former one, and a join that failed may still take effect with the next coordinator. Coordinators
that cannot know what was acknowledged are not judged: their logs lack the last record of that
moment, as that of a replaced coordinator, or after a power loss.
"""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from checkers.invariants.coordinated import STABLE, Group
from checkers.invariants.deleted_offsets import LastRecord

EpochAt = Callable[[int], int | None]
"""Returns the leader epoch of the record at an offset of a coordinator's log; None: it has none."""


class _Known(NamedTuple):
    """What was acknowledged in a generation of a group."""

    generation: int
    dynamic: frozenset[str]
    holders: Mapping[str, str]
    """The member with each instance id."""
    last: LastRecord
    """The last record that was committed in the coordinator's log then."""


def _earlier(known: _Known, group: Group) -> str | None:
    """Return how a group went back to an earlier generation, or ``None``.

    Another group of the same name has low numbers of generations again, and other members.
    """
    common = sorted({*known.dynamic, *known.holders.values()} & set(group.members))
    if group.generation > known.generation or not common:
        return None
    return f"it is in generation {group.generation}, and {common[0]} was in {known.generation}"


class StoredMembers:
    """What all coordinators of a run have acknowledged to the members of groups."""

    def __init__(self) -> None:
        self._known: dict[str, _Known] = {}
        self._epochs: dict[str, int] = {}
        """The highest leader epoch of a coordinator that has handled a request, by group."""
        self._unsure: dict[str, dict[str, int]] = {}
        """The instance ids whose member may be another one since a join in this generation."""

    def joins(self, name: str, instance: str, generation: int) -> None:
        """A coordinator handles a JoinGroup that may replace the member with an instance id."""
        self._unsure.setdefault(name, {})[instance] = generation

    def acknowledged(
        self, name: str, epoch: int, group: Group, last: LastRecord, instance: str | None = None
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
        )
        self._unsure[name] = {
            each: joined
            for each, joined in self._unsure.get(name, {}).items()
            if joined >= since and each != instance
        }

    def judge(self, name: str, epoch: int, group: Group | None, epoch_at: EpochAt) -> str | None:
        """Return how a group differs from what was acknowledged, or ``None``.

        epoch: the leader epoch of the coordinator, which has loaded the group. group: None if there
        is no such group, because it was deleted.
        """
        if epoch < self._epochs.get(name, epoch):
            return None
        self._epochs[name] = epoch
        known = self._known.get(name)
        if known is None:
            return None
        is_complete = epoch_at(known.last.offset) == known.last.epoch
        if not is_complete or group is None or group.generation != known.generation:
            del self._known[name]
            return _earlier(known, group) if is_complete and group is not None else None
        return self._differs(name, known, group) if group.state == STABLE else None

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
