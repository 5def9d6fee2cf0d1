from typing import Any

import pytest

from checkers.invariants import committed as committed_
from model.snapshot import Batch, EpochStart
from tests.checkers.invariants.streams import (
    broker,
    cluster,
    leader,
    log,
    replica,
    state,
    violated,
)

OLD = log(0, 0, 0)
"""Three records of epoch 0."""


def test_logs_agree_below_their_watermarks() -> None:
    """Logs agree below their high watermarks (R4); above its own, a follower may hold anything."""
    other = [*log(0, 0), *log(0, 0, 1, crc=7)[2:]]
    at_two = cluster(state(), {1: leader(OLD, hw=2), 2: replica(other, hw=2)})
    assert violated(at_two) == []
    beyond = cluster(state(isr=(1,)), {1: leader(OLD, hw=3), 2: replica(other, hw=3)})
    assert violated(beyond) == ["log-matching"]


def test_a_log_is_compared_with_what_a_dead_leader_committed() -> None:
    """A log is compared with what a leader committed, even after that leader has died."""
    committed = cluster(state(), {1: leader(OLD, hw=3)})
    out = state(isr=(1,), version=1)
    assert violated(committed, cluster(out, {3: replica(OLD, hw=3)})) == []
    assert violated(committed, cluster(out, {3: replica(log(1), hw=0)})) == []
    assert violated(committed, cluster(out, {3: replica(log(1), hw=1)})) == ["log-matching"]


def test_a_leader_holds_what_was_committed_before_it() -> None:
    """A leader holds, unchanged, every record that was committed before it (R1)."""
    committed = cluster(state(), {1: leader(OLD, hw=3)})
    whole = leader([*OLD, *log(0, 0, 0, 1)[3:]], hw=0, epoch=1)
    assert violated(committed, cluster(state(2, 1, (2, 3)), {2: whole})) == []
    short = leader(OLD[:2], epoch=1)
    assert violated(committed, cluster(state(2, 1, (2, 3)), {2: short})) == ["leader-completeness"]
    changed = leader(log(0, 0, 1), epoch=1)
    assert violated(committed, cluster(state(2, 1, (2, 3)), {2: changed})) == [
        "leader-completeness"
    ]


def test_a_hole_is_no_copy() -> None:
    """A log that continues behind a missing batch does not hold that batch."""
    committed = cluster(state(), {1: leader(OLD, hw=3)})
    holed = replica([OLD[0], OLD[2]], hw=3)
    assert violated(committed, cluster(state(isr=(1,), version=1), {2: holed})) == ["log-matching"]
    late = replica([OLD[2]], hw=3, log_start=2)
    assert violated(committed, cluster(state(isr=(1,), version=1), {2: late})) == []


COMPACTED = {"t-0": None}


def test_compacted_logs_are_compared_by_their_ends() -> None:
    """Each replica is compacted at its own time; what it has replicated must reach as far."""
    committed = cluster(state(), {1: leader(OLD, hw=3)})
    thinned = [OLD[1]._replace(crc=7), OLD[2]]
    left_out = cluster(state(), {2: replica(thinned, hw=3)}, compacted=COMPACTED)
    assert violated(committed, left_out) == []

    late = leader([*thinned, *log(0, 0, 0, 1)[3:]], hw=0, epoch=1)
    elected = cluster(state(2, 1, (2, 3)), {2: late}, compacted=COMPACTED)
    assert violated(committed, elected) == []

    short = leader([OLD[1]._replace(crc=7)], epoch=1)
    elected = cluster(state(2, 1, (2, 3)), {2: short}, compacted=COMPACTED)
    assert violated(committed, elected) == ["leader-completeness"]


def test_what_is_committed_after_a_compaction_is_remembered() -> None:
    """Watermarks of a leader whose log was compacted bind its successors, too."""
    grown = leader([OLD[2], *log(0, 0, 0, 0)[3:]], hw=4)
    compacted = cluster(state(), {1: grown}, compacted=COMPACTED)
    for member, found in ((OLD, ["candidate-completeness"]), (log(0, 0, 0, 0), [])):
        now = cluster(state(), {1: grown, 3: replica(member, hw=3)}, compacted=COMPACTED)
        assert violated(compacted, now) == found


def test_a_truncation_of_a_compacted_log_is_judged() -> None:
    """No replica truncates its log below its own watermark, compacted or not."""
    before = cluster(state(), {2: replica(OLD, hw=3)}, compacted=COMPACTED)
    after = cluster(state(), {2: replica(OLD, hw=3, cuts=(2,))}, compacted=COMPACTED)
    assert "truncation-below-hw" in violated(before, after)


def test_a_deposed_leader_need_not_know_what_came_later() -> None:
    """A deposed leader of epoch 0 is judged only by what epoch 0 committed."""
    zombie = leader(OLD[:1], hw=1)
    newer = leader([*OLD[:1], *log(1, 1, 1)[1:]], hw=3, epoch=1)
    assert violated(cluster(state(2, 1, (2, 3)), {1: zombie, 2: newer})) == []


def test_what_a_deposed_leader_commits_late_binds_its_successor() -> None:
    """What a deposed leader commits late binds its successor, for which it also waited
    (KIP-497)."""
    zombie = leader(OLD, hw=3)
    after = cluster(state(2, 1, (2, 3)), {1: zombie, 2: leader(OLD[:2], epoch=1)})
    assert violated(after) == ["leader-completeness"]


def test_each_running_member_of_the_isr_holds_what_is_committed() -> None:
    """Each running member of the ISR holds what is committed (R2); other replicas may lag."""
    behind = replica(OLD[:2], hw=2)
    assert violated(cluster(state(isr=(1, 3)), {1: leader(OLD, hw=3), 2: behind})) == []
    assert violated(cluster(state(isr=(1, 2)), {1: leader(OLD, hw=3)})) == []
    assert violated(cluster(state(isr=(1, 2)), {1: leader(OLD, hw=3), 2: behind})) == [
        "candidate-completeness"
    ]
    assert violated(cluster(state(isr=(1, 2)), {1: leader(OLD, hw=3), 2: None})) == [
        "candidate-completeness"
    ]
    assert violated(cluster(state(isr=(1, 2)), {1: leader(OLD, hw=2), 2: behind})) == []


def test_a_failed_disk_is_not_judged() -> None:
    """A replica on a failed disk is not judged: its content is unknown, and its broker is about to
    end."""
    offline = replica([], role="offline", log_end=3)
    assert violated(cluster(state(), {1: leader(OLD, hw=3), 2: offline})) == []


def test_what_may_be_in_a_failed_directory_is_not_judged() -> None:
    """A log that a broker lacks together with a data directory may be whole (KIP-112).

    A log that the broker has must still be complete: it has begun it again.
    """
    for lacks, held, found in (
        (True, None, []),
        (False, None, ["candidate-completeness"]),
        (True, replica([]), ["candidate-completeness"]),
    ):
        second = broker(held, lacks_directory=lacks)
        now = cluster(state(isr=(1, 2)), {1: leader(OLD, hw=3), 2: second})
        assert violated(now) == found


def test_a_cut_that_was_fetched_again_counts() -> None:
    """A truncation of a member of the ISR counts even if the records were fetched again, because it
    could have been elected in between."""
    led = leader(OLD, hw=3)
    before = cluster(state(), {1: led, 2: replica(OLD, hw=2)})
    after = {1: led, 2: replica(OLD, hw=3, cuts=(2,))}
    assert violated(before, cluster(state(), after)) == ["candidate-completeness"]
    elsewhere = state(isr=(1, 2), version=5)
    assert violated(before, cluster(elsewhere, after)) == [], "it may have been out meanwhile"
    harmless = {1: led, 2: replica(OLD, hw=3, cuts=(3,))}
    assert violated(before, cluster(state(), harmless)) == []


def test_nobody_cuts_below_its_own_watermark() -> None:
    """A replica outside the ISR does not truncate below its own watermark either; truncations from
    before a restart are unknown."""
    led = leader(OLD, hw=3)
    out = state(isr=(1,))
    before = cluster(out, {1: led, 2: replica(OLD, hw=2)})
    cut = replica(OLD[:1], hw=1, cuts=(1,))
    assert violated(before, cluster(out, {1: led, 2: cut})) == ["truncation-below-hw"]
    at_it = replica(OLD[:2], hw=2, cuts=(2,))
    assert violated(before, cluster(out, {1: led, 2: at_it})) == []
    assert violated(before, cluster(out, {1: led, 2: broker(cut, life=2)})) == []


def test_a_log_that_was_deleted_has_cut_nothing() -> None:
    """A replica that was moved away and back has a new log, which counts as no truncation."""
    led = leader(OLD, hw=3)
    out = state(isr=(1,))
    before = cluster(out, {1: led, 2: replica(OLD, hw=2, cuts=(2,))})
    assert violated(before, cluster(out, {1: led, 2: replica([], hw=0, log_number=1)})) == []
    anew: dict[str, Any] = {"hw": 0, "cuts": (2, 0)}  # for example, where its leader's log began
    assert violated(before, cluster(out, {1: led, 2: replica([], **anew, log_number=1)})) == []
    assert violated(before, cluster(out, {1: led, 2: replica([], **anew)})) == [
        "truncation-below-hw"
    ]


def test_after_a_power_loss_a_member_of_the_isr_may_lack_what_it_had_not_synced() -> None:
    """After a power loss, a member of the ISR may lack unsynced records until it has caught up once
    (L4)."""
    led = leader(OLD, hw=3)
    before = cluster(state(), {1: led, 2: replica(OLD, hw=3)})
    hit = {"damages": {2: 1}}
    back = cluster(state(), {1: led, 2: broker(replica(OLD[:1], hw=1), life=2)}, **hit)
    whole = cluster(state(), {1: led, 2: broker(replica(OLD, hw=3), life=2)}, **hit)
    again = cluster(state(), {1: led, 2: broker(replica(OLD[:1], hw=1), life=3)}, **hit)
    assert violated(before, back) == []
    assert violated(before, back, whole) == []
    assert violated(before, back, whole, again) == ["candidate-completeness"]


def test_when_the_last_whole_member_of_the_isr_loses_power_nothing_is_promised() -> None:
    """A power loss of the last whole member of the ISR may lose committed records (B23 and B24)."""
    before = cluster(state(isr=(1, 2)), {1: leader(OLD, hw=3), 2: replica(OLD, hw=3)})
    elected = leader(OLD[:1], hw=1, epoch=1, isr=(1,), maximal_isr=(1,))

    def after(*hit: int) -> list[str]:
        damages = dict.fromkeys(hit, 1)
        off = cluster(state(isr=(1, 2)), {}, damages=damages)
        back = cluster(state(1, 1, (1,)), {1: broker(elected, life=2)}, damages=damages)
        return violated(before, off, back)

    assert after(1, 2) == []
    assert after(1) == ["leader-completeness"]


def test_unclean_elections_lose_what_was_committed() -> None:
    """With unclean elections, committed records may be lost (R15)."""
    committed = cluster(state(), {1: leader(OLD, hw=3)})
    short = cluster(state(2, 1, (2,)), {2: leader(OLD[:1], epoch=1)})
    assert violated(committed, short, unclean_elections=True) == []


def test_a_topic_that_was_deleted_is_out_of_sight() -> None:
    """A topic that was ever deleted is not checked: a broker that was away may hold the old one."""
    committed = cluster(state(), {1: leader(OLD, hw=3)})
    anew = cluster(state(birth=9), {1: broker(leader(log(0, crc=9), hw=1))})
    assert violated(committed, anew) == []


def test_a_log_without_its_beginning_is_compared_from_where_it_starts() -> None:
    """A log whose beginning is deleted by retention is compared from where it starts."""
    led = leader(OLD[1:], hw=3, log_start=1)
    longer = replica(OLD, hw=3)
    assert violated(cluster(state(), {1: led, 2: longer})) == []


@pytest.mark.parametrize(
    ("batches", "end", "start", "names"),
    [
        (OLD[:1], 3, 3, []),  # all is deleted
        (OLD[:1], 3, 2, ["log-in-order", "log-matching", "candidate-completeness"]),
        ([OLD[0], OLD[2]], 3, 2, []),
        ([OLD[0], OLD[2]], 3, 1, ["log-matching", "candidate-completeness"]),
    ],
)
def test_what_is_deleted_before_a_snapshot_is_not_compared(
    batches: list[Batch], end: int, start: int, names: list[str]
) -> None:
    """Retention may delete batches of the leader that no snapshot has shown; others still have
    them."""
    epochs = (EpochStart(0, start),) if start < end else ()
    led = leader(batches, hw=3, log_start=start, log_end=end, epochs=epochs)
    assert violated(cluster(state(), {1: led, 2: replica(OLD, hw=3)})) == names


def test_what_was_deleted_everywhere_is_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that returns with batches from before all logs is not judged by them; what is still
    in a log counts."""
    whole, now = log(*[0] * 9), state(isr=(1,))
    held = cluster(now, {1: leader(whole[:8], hw=8)})
    begun = cluster(now, {1: leader(whole[4:], hw=9, log_start=4)})
    old = cluster(now, {2: replica(log(*[1] * 4), hw=4)})
    young = cluster(now, {2: replica([*whole[:7], *log(*[0] * 7, 1)[7:]], hw=8)})
    assert violated(held, begun, old) == ["log-matching"]
    monkeypatch.setattr(committed_, "PRUNE_MIN", 8)
    assert violated(held, begun, old) == []
    assert violated(held, begun, young) == ["log-matching"]


def test_watermarks_of_old_epochs_are_forgotten(monkeypatch: pytest.MonkeyPatch) -> None:
    """Later epochs keep the highest of them."""
    monkeypatch.setattr(committed_, "EPOCHS_MAX", 4)
    line = committed_._Line()
    line.marks = {epoch: 100 - epoch for epoch in range(9)}
    whole = {epoch: line.bound(epoch) for epoch in range(6, 9)}
    line.prune(0)
    assert len(line.marks) <= 4
    assert {epoch: line.bound(epoch) for epoch in range(6, 9)} == whole
    assert line.bound(0) == 0
