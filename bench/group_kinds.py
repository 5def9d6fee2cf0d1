"""Kinds of wrong answers about consumer groups, each planted in a copy of a correct history.

A kind chooses a random place and asks the oracle (:mod:`bench.group_history`) whether a correct
Kafka could have given that answer. If not, it changes the observation there and nowhere else.
"""

import copy
import random
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from bench.group_history import NEVER, Answer, Commit, Given, GroupHistory, offset_of
from model.plan import Plan

Events = list[dict[str, Any]]


class Corruption(NamedTuple):
    """A history with one wrong observation."""

    events: Events
    """The whole history, including the wrong observation."""
    what: str
    """A description of the change."""


class Undecidable(NamedTuple):
    """A correct Kafka could have given this answer."""

    why: str


Trial = Corruption | Undecidable | None
"""``None``: there is nothing to corrupt at this place."""


@dataclass
class Source:
    """A correct run."""

    folder: Path
    history: GroupHistory
    plan: Plan | None

    def changed(self, *places: int) -> Events:
        """Return the events of the run; those at ``places`` are copies that may be changed."""
        events = list(self.history.events)
        for place in places:
            events[place] = copy.deepcopy(events[place])
        return events


# Fetches of committed offsets.


def _replace_answer(source: Source, answer: Answer, place: Any, what: str) -> Corruption:
    """Change the committed offset that an answer states for its partition."""
    events = source.changed(answer.operation.end)
    for micro_op in events[answer.operation.end]["value"]:
        if micro_op[0] == "committed" and micro_op[1] == answer.group:
            micro_op[2][answer.key] = place
    return Corruption(
        events,
        f"event {answer.operation.end}: the committed offset of {answer.group} {answer.key} is "
        f"{place}, not {answer.place}: {what}",
    )


def _explained(source: Source, answer: Answer, offset: int | None) -> Undecidable | None:
    history, of = source.history, (answer.group, answer.key)
    begin, end = answer.operation.begin, answer.operation.end
    if history.is_automatic(answer.group) and offset is not None:
        return Undecidable("a client of the group commits automatically")
    if history.possible(of, offset, begin, end):
        return Undecidable("a commit that overlaps or is in doubt explains it")
    if history.possibly_stale(of, offset, begin):
        return Undecidable("a former coordinator may have answered")
    return None


def answered_as_nothing(source: Source, rng: random.Random) -> Trial:
    """A fetch finds no committed offset, although there is one."""
    answers = [each for each in source.history.answers if each.offset is not None]
    if not answers:
        return None
    answer = rng.choice(answers)
    return _explained(source, answer, None) or _replace_answer(source, answer, None, "nothing")


def answered_with_former_offset(source: Source, rng: random.Random) -> Trial:
    """A fetch finds an offset that was overwritten before the fetch was invoked."""
    history = source.history
    answers = [each for each in history.answers if _former(history, each)]
    if not answers:
        return None
    answer = rng.choice(answers)
    commit = rng.choice(_former(history, answer)[-3:])
    reason = _explained(source, answer, commit.offset)
    metadata = _place_of(commit, answer.key, answer.group)
    return reason or _replace_answer(source, answer, metadata, "an earlier commit")


def _former(history: GroupHistory, answer: Answer) -> list[Commit]:
    """Return commits of other offsets that ended before an answer was requested."""
    return [
        commit
        for commit in history.commits[answer.group, answer.key]
        if commit.end < answer.operation.begin and commit.offset not in (None, answer.offset)
    ]


def _place_of(commit: Commit, key: str, group: str) -> Any:
    for micro_op in commit.operation.completion:
        if micro_op[0] in ("commit", "commit-plainly") and micro_op[1] == group:
            place = micro_op[2].get(key)
            if offset_of(place) == commit.offset:
                return place
    return commit.offset


def answered_with_other_partitions_offset(source: Source, rng: random.Random) -> Trial:
    """A fetch finds an offset that was committed only for another partition."""
    history = source.history
    if not history.answers:
        return None
    answer = rng.choice(history.answers)
    of = (answer.group, answer.key)
    others = [
        each.offset
        for each in history.answers
        if each.group == answer.group and each.key != answer.key and each.offset is not None
    ]
    known = {commit.offset for commit in history.commits[of]}
    others = [offset for offset in others if offset not in known]
    if not others:
        return None
    if any(c.is_any and c.begin < answer.operation.end for c in history.commits[of]):
        return Undecidable("a commit of unknown offset may have written it")
    offset = rng.choice(others)
    return _explained(source, answer, offset) or _replace_answer(
        source, answer, offset, "the offset of another partition"
    )


def answered_with_other_metadata(source: Source, rng: random.Random) -> Trial:
    """A fetch finds the offset with metadata that was committed with another offset."""
    answers = [each for each in source.history.answers if isinstance(each.place, list)]
    if not answers:
        return None
    answer = rng.choice(answers)
    metadata = rng.choice([each.place[1] for each in answers] + [None])
    if metadata == answer.place[1]:
        return None
    offset = answer.place[0]
    same = [
        _place_of(c, answer.key, answer.group)
        for c in source.history.commits[answer.group, answer.key]
        if c.offset == offset
    ]
    place = offset if metadata is None else [offset, metadata]
    if place in same:
        return Undecidable("a commit also wrote that metadata")
    return _replace_answer(source, answer, place, "other metadata")


def commit_lost_at_failover(source: Source, rng: random.Random) -> Trial:
    """After a change of leaders no fetch finds the last commit before it, until the next commit."""
    history = source.history
    found = [each for each in history.commits.items() if each[1]]
    if not found:
        return None
    of, commits = rng.choice(found)
    certain = [commit for commit in commits if commit.is_certain and commit.offset is not None]
    if len(certain) < 2:
        return None
    place = rng.randrange(1, len(certain))
    lost, former = certain[place], certain[place - 1]
    next_ = min((c.begin for c in commits if c.begin > lost.end), default=NEVER)
    later = [
        answer
        for answer in history.answers
        if (answer.group, answer.key) == of
        and lost.end < answer.operation.begin
        and answer.operation.end < next_
        and answer.offset == lost.offset
    ]
    begun = [
        each
        for each in history.given
        if (each.group, each.key) == of and lost.end < each.operation.end < next_
    ]
    if not later or begun or former.offset == lost.offset:
        return None
    if reason := _explained(source, later[0], former.offset):
        return reason
    events = source.changed(*(answer.operation.end for answer in later))
    for answer in later:
        for micro_op in events[answer.operation.end]["value"]:
            if micro_op[0] == "committed" and micro_op[1] == answer.group:
                micro_op[2][answer.key] = _place_of(former, answer.key, answer.group)
    return Corruption(
        events, f"{of}: {len(later)} answers have {former.offset} in place of {lost.offset}"
    )


# Start positions of members.


class Beginning(NamedTuple):
    """Where a member began, and its first poll that delivered records of the partition."""

    given: Given
    offset: int
    polled: int
    """The event of that poll, or ``NEVER``."""
    until: int
    """The next event that assigns or revokes the partition, or is not ``ok``; or ``NEVER``."""


def _beginnings(history: GroupHistory) -> Iterator[Beginning]:
    by_process: dict[int, list[Any]] = defaultdict(list)
    for operation in history.operations:
        by_process[operation.process].append(operation)
    for given in history.given:
        if given.position is None or history.is_automatic(given.group):
            continue
        polled, until = NEVER, NEVER
        for operation in by_process[given.operation.process]:
            if operation.end < given.operation.end or operation.end == NEVER:
                continue
            begin = given.micro_op + 1 if operation is given.operation else 0
            micro_ops = operation.completion if isinstance(operation.completion, list) else []
            if operation.type != "ok":
                until = min(until, operation.end)
            for micro_op in micro_ops[begin:]:
                if micro_op[0] == "poll" and len(micro_op) > 1 and given.key in micro_op[1]:
                    polled = min(polled, operation.end)
                elif micro_op[0] in ("assigned", "revoked", "lost") and given.key in micro_op[3]:
                    until = min(until, operation.end)
        yield Beginning(given, given.position, polled if polled <= until else NEVER, until)


def _begin_at(source: Source, beginning: Beginning, offset: int) -> Events:
    """Change the history so that the member begins, and its first poll starts, at this offset."""
    given, history = beginning.given, source.history
    at = given.operation.end
    places = (at,) if beginning.polled == NEVER else (at, beginning.polled)
    events = source.changed(*places)
    events[at]["value"][given.micro_op][3][given.key] = offset
    if beginning.polled != NEVER:
        for micro_op in events[beginning.polled]["value"]:
            if micro_op[0] == "poll" and given.key in micro_op[1]:
                pairs = [pair for pair in micro_op[1][given.key] if pair[0] >= offset]
                first = min(pair[0] for pair in micro_op[1][given.key])
                values = history.read[given.key]
                again = [[o, values[o]] for o in sorted(values) if offset <= o < first]
                micro_op[1][given.key] = again + pairs
                if not micro_op[1][given.key]:
                    del micro_op[1][given.key]
    return events


def _polled(source: Source, beginning: Beginning) -> list[int]:
    """Return the offsets that the first poll delivered."""
    if beginning.polled == NEVER:
        return []
    event = source.history.events[beginning.polled]
    return [
        pair[0]
        for micro_op in event["value"]
        if micro_op[0] == "poll"
        for pair in micro_op[1].get(beginning.given.key, ())
    ]


def _gap(source: Source, rng: random.Random, *, is_first: bool) -> Trial:
    history = source.history
    found = []
    for beginning in _beginnings(history):
        given = beginning.given
        of, end = (given.group, given.key), given.operation.end
        begun = [commit for commit in history.commits[of] if commit.begin < end]
        certain = [commit for commit in begun if commit.end < given.since]
        polled = _polled(source, beginning)
        skipped = history.firm(given.key, beginning.offset, max(polled, default=-1) + 1)
        if skipped and is_first == (not begun) and (is_first or certain):
            found.append((beginning, polled, skipped))
    if not found:
        return None
    beginning, polled, skipped = rng.choice(found)
    target = rng.choice(skipped) + 1
    given = beginning.given
    of, since, end = (given.group, given.key), given.since, given.operation.end
    if any(c.is_any and c.begin < end for c in history.commits[of]):
        return Undecidable("a commit of unknown offset may have written it")
    ahead = {c.offset for c in history.commits[of] if (c.offset or 0) > beginning.offset}
    if any(history.possible(of, offset, since, end) for offset in ahead):
        return Undecidable("a commit that overlaps or is in doubt explains it")
    events = _begin_at(source, beginning, target)
    return Corruption(events, f"event {end}: {of} begins at {target}, not {beginning.offset}")


def gap_after_rebalance(source: Source, rng: random.Random) -> Trial:
    """A member begins after the committed offset, and skips records."""
    return _gap(source, rng, is_first=False)


def gap_at_first_join(source: Source, rng: random.Random) -> Trial:
    """A member begins after the start of the log, although nothing was ever committed."""
    return _gap(source, rng, is_first=True)


def redelivery(source: Source, rng: random.Random) -> Trial:
    """A member begins before the committed offset, and receives records again."""
    history = source.history
    found = [
        each
        for each in _beginnings(history)
        if history.firm(each.given.key, 0, each.offset)
        and any(c.end < each.given.since for c in history.commits[each.given.group, each.given.key])
    ]
    if not found:
        return None
    beginning = rng.choice(found)
    given = beginning.given
    of, since, end = (given.group, given.key), given.since, given.operation.end
    target = rng.choice(history.firm(given.key, 0, beginning.offset)[-8:])
    if history.possible(of, None, since, end):
        return Undecidable("it is possible that no offset was committed")
    unknown = [c for c in history.commits[of] if c.is_any and c.begin < end]
    if unknown:
        return Undecidable("a commit of unknown offset may have written it")
    below = {c.offset for c in history.commits[of] if c.offset is not None and c.offset <= target}
    if any(history.possible(of, offset, since, end) for offset in below):
        return Undecidable("a commit that overlaps or is in doubt explains it")
    events = _begin_at(source, beginning, target)
    return Corruption(events, f"event {end}: {of} begins at {target}, not {beginning.offset}")


# Owners and commits.


def double_owner(source: Source, rng: random.Random) -> Trial:
    """One generation assigns a partition to two members."""
    history = source.history
    generations: dict[tuple[str, int], list[Given]] = defaultdict(list)
    for given in history.given:
        if given.generation is not None:
            generations[given.group, given.generation].append(given)
    pairs = [
        (a, b)
        for given in generations.values()
        for a in given
        for b in given
        if a.operation.process != b.operation.process
        and (
            history.instances.get(a.operation.process) is None
            or history.instances.get(a.operation.process)
            != history.instances.get(b.operation.process)
        )
    ]
    if not pairs:
        return None
    mine, other = rng.choice(pairs)
    at = mine.operation.end
    events = source.changed(at)
    events[at]["value"][mine.micro_op][3][other.key] = other.position
    return Corruption(
        events, f"event {at}: {other.key} also belongs to generation {mine.generation}"
    )


def former_owners_commit(source: Source, rng: random.Random) -> Trial:
    """A commit is accepted that was rejected because the partition belonged to another member."""
    history = source.history
    found = []
    for operation in history.operations:
        if operation.f != "commit" or operation.type != "fail":
            continue
        for micro_op in operation.asked:
            if micro_op[0] == "commit" and micro_op[3:] != ["delete"]:
                found += [(operation, micro_op[1], key) for key in micro_op[2]]
    if not found:
        return None
    operation, group, key = rng.choice(found)
    mine = [
        g
        for g in history.given
        if g.operation.process == operation.process
        and g.key == key
        and g.operation.end < operation.begin
    ]
    if not mine or mine[-1].generation is None:
        return None
    others = [
        g
        for g in history.given
        if (g.group, g.key) == (group, key)
        and (g.generation or -1) > mine[-1].generation
        and g.operation.end < operation.begin
        and g.operation.process != operation.process
    ]
    revoked_later = [
        o
        for o in history.operations
        if o.process == operation.process
        and operation.end < o.end < NEVER
        and o.type == "ok"
        and any(m[0] in ("revoked", "lost") and key in m[3] for m in _micro_ops(o.completion))
    ]
    if not others or not revoked_later:
        return Undecidable("no other member is known to have been assigned the partition")
    if any(
        g.operation.process == operation.process and g.since < operation.end < g.operation.end
        for g in history.given
        if (g.group, g.key) == (group, key)
    ):
        return Undecidable("the member may have been assigned the partition again")
    events = source.changed(operation.end)
    events[operation.end] |= {"type": "ok"}
    events[operation.end].pop("error", None)
    return Corruption(events, f"event {operation.end}: the commit of {key} succeeds")


def _micro_ops(value: Any) -> list[list[Any]]:
    return [each for each in value or () if isinstance(each, list)]


def commit_of_undelivered(source: Source, rng: random.Random) -> Trial:
    """A member commits an offset beyond what its group has received."""
    history = source.history
    found = []
    for of, commits in history.commits.items():
        for commit in commits:
            operation = commit.operation
            if operation.process not in history.members[of[0]] or operation.type != "ok":
                continue
            if operation.f != "commit" or commit.offset is None:
                continue
            known = max(history.reach(of, operation.end) + 1, commit.offset)
            beyond = history.firm(of[1], known, NEVER)
            reread = any(
                (g.group, g.key) == of and g.operation.end > commit.begin for g in history.given
            )
            fetched = any(
                (a.group, a.key) == of and a.operation.end > commit.begin for a in history.answers
            )
            if beyond and not (reread and fetched and rng.random() < 0.5):
                found.append((of, commit, beyond))
    if not found:
        return None
    of, commit, beyond = rng.choice(found)
    target = rng.choice(beyond[:4]) + 1
    first, last = commit.operation.begin, commit.operation.end
    events = source.changed(first, last)
    for place in (first, last):
        for micro_op in events[place]["value"]:
            if micro_op[0] == "commit" and of[1] in micro_op[2]:
                micro_op[2][of[1]] = target
    return Corruption(events, f"event {last}: {of} {target} is committed, not {commit.offset}")


Plant = Callable[[Source, random.Random], Trial]

KINDS: dict[str, Plant] = {
    "commit answered as nothing": answered_as_nothing,
    "former offset": answered_with_former_offset,
    "offset of another partition": answered_with_other_partitions_offset,
    "other metadata": answered_with_other_metadata,
    "commit lost at a failover": commit_lost_at_failover,
    "gap after a rebalance": gap_after_rebalance,
    "gap at the first join": gap_at_first_join,
    "redelivery": redelivery,
    "two owners": double_owner,
    "commit of a former owner": former_owners_commit,
    "commit of what was not delivered": commit_of_undelivered,
}
"""All kinds, by name."""
