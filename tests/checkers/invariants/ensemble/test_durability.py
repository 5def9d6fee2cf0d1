from tests.checkers.invariants.ensemble.members import (
    ensemble,
    entries,
    leading,
    member,
    violated,
    zxid,
)

LOG = entries((1, 1), (1, 2))


def test_an_acknowledged_transaction_is_durable() -> None:
    """A leader counts only what is on the disk of the server that has acknowledged it (I7)."""
    leader = leading(LOG, applied=0, acknowledged={2: zxid(1, 2)})
    assert violated({1: leader, 2: member(LOG)}) == []
    unsynced = entries((1, 1), (1, 2), durable=1)
    assert violated({1: leader, 2: member(unsynced)}) == ["durable-acknowledgement"]
    assert violated({2: member(LOG)}, {1: leader}) == [], "it is down, and has it on its disk"


def test_what_a_server_has_logged_before_its_end_counts() -> None:
    """A server may log, acknowledge and end between two snapshots."""
    leader = leading(LOG, applied=0, acknowledged={2: zxid(1, 2)})
    first = {1: leading(LOG, applied=0), 2: member(entries((1, 1)))}
    assert violated(first, ensemble({1: leader}, down={2: member(LOG)})) == []
    assert violated(first, {1: leader}) == ["durable-acknowledgement"]


def test_an_acknowledged_history_is_taken_over() -> None:
    """A server that has acknowledged NEWLEADER has that epoch on its disk (ZOOKEEPER-3911)."""
    leader = leading(epoch=2, have_history=(1, 2))
    ready = member(accepted_epoch=2, current_epoch=2)
    assert violated({1: leader, 2: ready}) == []
    early = member(accepted_epoch=2, current_epoch=1)
    assert violated({1: leader, 2: early}) == ["durable-acknowledgement"]
