"""The state of a partition: what is found in a history that grows, and what is left out of it."""

from typing import Any

import pytest

from checkers.live.partition import KEPT_NS, SETTLED_NS, Partition
from model import record_keys
from tests.checkers.live.recording import Recording

K = "x-0"
LONG_S = SETTLED_NS / 1e9 + 1


def test_a_correct_history_shows_nothing(recording: Recording) -> None:
    """Records that were sent once and read in order are no anomaly, wherever a batch ends."""
    for begin in range(0, 30, 3):
        recording.log(K, range(begin, begin + 3))
        assert recording.look() == []


def test_a_lost_record_is_found_when_a_reader_goes_past_it(recording: Recording) -> None:
    """The near miss: until then, it may only not have been read yet."""
    recording.log(K, range(3))
    recording.sent(K, 3, 3)
    recording.sent(K, 4, 4)
    assert recording.look() == []
    recording.polled(K, (4, 4))
    [seen] = [each for each in recording.seen() if each.finding.anomaly == "lost-write"]
    assert (seen.finding.key, seen.finding.value) == (K, 3)
    assert seen.witnessed_ns == int(recording.now_s * 1e9)


def test_a_poll_that_is_still_open_may_deliver_the_record(recording: Recording) -> None:
    """Two members share a partition: the first one's poll is completed after that of the second."""
    recording.log(K, range(3))
    recording.sent(K, 3, 3)
    recording.sent(K, 4, 4)
    recording.record(8, "invoke", "poll", [["poll"]])
    recording.polled(K, (4, 4), process=7)
    assert recording.look() == []
    recording.record(8, "ok", "poll", [["poll", {K: [[3, 3]]}]])
    assert recording.look() == []


def test_a_record_that_is_read_before_its_send_is_completed_is_no_phantom(
    recording: Recording,
) -> None:
    """The send belongs to a later batch than the poll that delivers its record."""
    recording.record(0, "invoke", "send", [["send", K, 0]])
    assert recording.look() == []
    recording.polled(K, (0, 0))
    assert recording.look() == []
    recording.record(0, "ok", "send", [["send", K, [0, 0]]])
    assert recording.look() == []


@pytest.mark.parametrize(
    ("records", "anomaly"),
    [
        ([(5, 99)], "phantom"),
        ([(5, 2)], "duplicate"),
        ([(2, 3)], "inconsistent-offsets"),
    ],
)
def test_what_is_read_is_held_against_what_was_sent(
    recording: Recording, records: list[tuple[int, int]], anomaly: str
) -> None:
    """Anomalies across batches: the sends are older than the polls that contradict them."""
    recording.log(K, range(4))
    assert recording.look() == []
    recording.polled(K, *records, process=7)
    assert anomaly in recording.look()


def test_a_finding_is_returned_once(recording: Recording) -> None:
    """Its records stay in the state for a while, and are judged again with every batch."""
    recording.log(K, range(4))
    recording.polled(K, (9, 99))
    assert recording.look() == ["phantom"]
    recording.sent(K, 4, 4)
    assert recording.look() == []


def test_what_the_contract_permits_is_not_returned(tmp_path: Any) -> None:
    """Producers that are not idempotent may duplicate records."""
    from checkers.expectations import Contract

    recording = Recording(tmp_path, contract=Contract(idempotent=False))
    recording.log(K, range(4))
    recording.sent(K, 6, 6)
    recording.polled(K, (4, 3))
    assert "duplicate" not in recording.look()
    recording.close()


@pytest.mark.parametrize(
    ("rebalance", "found"),
    [
        ([["lost", "g", 1, [K]], ["assigned", "g", 2, {K: 0}]], []),
        ([["lost", "g", 1, ["x-1"]], ["assigned", "g", 2, {"x-1": 0}]], ["int-nonmonotonic-poll"]),
        ([], ["int-nonmonotonic-poll"]),
    ],
)
def test_a_member_may_begin_again_after_a_rebalance(
    recording: Recording, rebalance: list[Any], found: list[str]
) -> None:
    """Within one operation as well: it reports the rebalance of the partition between its polls."""
    for offset in range(3):
        recording.sent(K, offset, offset)
    again = ["poll", {K: [[0, 0], [1, 1], [2, 2]]}]
    for polled in ([["assigned", "g", 1, {K: 0}]], [["poll", {K: [[0, 0]]}], *rebalance, again]):
        recording.record(9, "invoke", "poll", [["poll"]])
        recording.record(9, "ok", "poll", polled)
    assert recording.look() == found


def test_settled_records_are_left_out(recording: Recording) -> None:
    """The state has a bounded number of events, however long the history is."""
    sizes = []
    for begin in range(0, 400, 20):
        recording.log(K, range(begin, begin + 20))
        recording.now_s += LONG_S
        assert recording.look() == []
        sizes.append(recording.here.events)
    assert max(sizes[1:]) <= 2 * sizes[1]


def test_a_record_that_was_left_out_may_be_read_again(recording: Recording) -> None:
    """A reader that begins at the beginning reads records that are settled."""
    recording.log(K, range(20))
    recording.now_s += LONG_S
    assert recording.look() == []
    recording.log(K, range(20, 22))
    assert recording.look() == []
    recording.polled(K, *((offset, offset) for offset in range(22)), process=7)
    assert recording.look() == []


def test_a_record_that_was_left_out_is_still_no_other_record(recording: Recording) -> None:
    """A settled record that appears at a higher offset is a duplicate, and no phantom."""
    recording.log(K, range(20))
    recording.now_s += LONG_S
    assert recording.look() == []
    recording.polled(K, (30, 5))
    assert recording.look() == ["duplicate"]


def test_records_that_nobody_reads_are_left_out_in_the_end(recording: Recording) -> None:
    """Without readers, a state does not grow for ever either."""
    for offset in range(50):
        recording.sent(K, offset, offset)
    assert recording.look() == []
    before = recording.here.events
    recording.now_s += KEPT_NS / 1e9 + 1
    recording.sent(K, 50, 50)
    assert recording.look() == []
    recording.sent(K, 51, 51)
    assert recording.look() == []
    assert recording.here.events < before / 5


def test_a_crash_is_found(recording: Recording) -> None:
    """A node that exits by itself ends a run like any other illegal anomaly; it is found once."""
    recording.log(K, range(2))
    recording.log("y-0", range(2))
    node = {"node": "broker-1", "serves": True, "status": 1, "last_line": "boom"}
    recording.record(-1, "info", "crash", node)
    assert recording.look() == ["crash"]


def test_an_aborted_read_of_a_transaction_is_found(recording: Recording) -> None:
    """Records of a transaction that was aborted must not be delivered."""
    recording.log(K, range(2))
    recording.record(1, "invoke", "txn", [["send", K, 7], ["abort"]])
    recording.record(1, "fail", "txn", [["send", K, 7], ["abort"]])
    assert recording.look() == []
    recording.polled(K, (2, 7))
    assert "G1a" in recording.look()


def test_a_state_survives_its_way_to_disk(recording: Recording) -> None:
    """What was loaded again finds what the first state would have found."""
    recording.log(K, range(20))
    recording.now_s += LONG_S
    assert recording.look() == []
    partitions = recording.here._partitions
    partitions[K] = Partition.loaded(partitions[K].dumped())
    recording.polled(K, (30, 5))
    assert recording.look() == ["duplicate"]


def test_a_value_that_is_sent_twice_is_no_phantom(recording: Recording) -> None:
    """Records of a value that two operations may have written are not judged, in any batch."""
    recording.record(0, "invoke", "send", [["send", K, 1]])
    recording.record(0, "info", "send", [["send", K, 1]])
    recording.sent(K, 0, 1, process=1)
    assert recording.look() == []
    recording.polled(K, (0, 1))
    assert recording.look() == []
    recording.polled(K, (1, 2))
    assert recording.look() == ["phantom"]


@pytest.mark.parametrize("kind", ["info", "fail"])
@pytest.mark.parametrize("later_s", [0.0, KEPT_NS / 1e9 + 100])
def test_a_deletion_in_doubt_may_happen_at_any_time(
    recording: Recording, kind: Any, later_s: float
) -> None:
    """It is known to partitions that are named later, and is not forgotten."""
    asked = [["delete-records", K, -1]]
    recording.record(5, "invoke", "delete-records", asked)
    recording.record(5, kind, "delete-records", asked)
    assert recording.look() == []
    recording.now_s += later_s
    recording.log("y-0", range(1))
    assert recording.look() == []
    recording.sent(K, 0, 1)
    recording.sent(K, 1, 2)
    recording.polled(K, (1, 2))
    assert recording.look() == ([] if kind == "info" else ["lost-write"])


@pytest.mark.parametrize("key", [0, 1])
def test_a_topic_stays_compacted(recording: Recording, key: int) -> None:
    """A topic that is used long after its creation keeps the last record of each key alone."""
    asked = [["create-compacted", "c", 1]]
    recording.record(4, "invoke", "create-topic", asked)
    recording.record(4, "ok", "create-topic", asked)
    recording.log(K, range(1))
    assert recording.look() == []
    recording.now_s += KEPT_NS / 1e9 + 100
    recording.log(K, range(1, 2))
    assert recording.look() == []
    last = record_keys.value_of(2, key, deletes=False)
    recording.sent("c-0", 0, record_keys.value_of(1, 0, deletes=False))
    recording.sent("c-0", 1, last)
    recording.polled("c-0", (1, last))
    assert recording.look() == ([] if key == 0 else ["lost-write"])


@pytest.mark.parametrize("offset", [3, 0])
def test_what_follows_from_a_misplaced_record_is_no_further_anomaly(
    recording: Recording, offset: int
) -> None:
    """A record that is legally at two offsets does not show that its transaction was open."""
    recording.record(5, "invoke", "delete-records", [["delete-records", K, 4]])
    recording.record(5, "ok", "delete-records", [["delete-records", K, 4, 4]])
    recording.record(1, "invoke", "txn", [["send", K, 1]])
    recording.record(1, "ok", "txn", [["send", K, 1]])
    recording.polled(K, (5, 1))
    recording.sent(K, 1, 2, process=2)
    recording.polled(K, (1, 2), (offset, 1), process=8)
    assert "dirty-read" not in recording.look()
