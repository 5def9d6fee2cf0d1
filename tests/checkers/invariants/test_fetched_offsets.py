"""Offsets that a coordinator returns are compared with all that was ever committed."""

from checkers.invariants.fetched_offsets import Commit, Commits, lacking

KEY = ("g", "x-0")
SENT = Commit(7, 3, "at 7")


def test_what_was_committed_may_be_returned() -> None:
    """The offset, its leader epoch and its metadata belong together, and to one partition."""
    commits = Commits()
    assert commits.other(KEY, SENT) is not None
    commits.sent(KEY, SENT)
    commits.sent(KEY, Commit(8, 4, ""))
    assert commits.other(KEY, SENT) is None
    assert commits.other(KEY, Commit(8, 4, "")) is None
    assert commits.other(KEY, SENT._replace(leader_epoch=-1)) is not None
    assert commits.other(KEY, SENT._replace(metadata="")) is not None
    assert commits.other(KEY, SENT._replace(offset=8)) is not None
    assert commits.other(("g", "x-1"), SENT) is not None
    assert commits.other(("h", "x-0"), SENT) is not None


def test_no_partition_is_left_out() -> None:
    """The answer for all partitions may have more than are stored now, and not fewer."""
    assert lacking(["x-0"], ["x-0", "x-1"]) is None
    assert lacking([], []) is None
    assert "x-1" in (lacking(["x-0", "x-1"], ["x-0"]) or "")
