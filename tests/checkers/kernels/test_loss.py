from typing import Any

import pytest

from checkers.kernels.loss import kernel, lost_writes, unseen


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("s:x=a@0 s:x=b@1 p:x=a@0,x=b@1", []),
        ("s:x=a@0 s:x=b@1 p:x=b@1", ["1@0"]),
        ("s?:x=a@0 s1:x=b@1 p:x=b@1", []),  # in doubt: it may never have landed
        ("s!:x=a@0 s1:x=b@1 p:x=b@1", []),  # refused
        (">s:x=a s1:x=b@1 p:x=b@1", []),  # never completed
        ("s:x=a@0 s:x=b@1 p:x=a@0", []),  # no reader came as far as b
        ("s:x=a@0 s:x=b@1 p:x=a@0 c:x@1", ["2@1"]),  # but here one did
        ("s:x=a@0 p:x=a@0 c:x@1 s:x=b@1", []),  # caught up before b was acknowledged
        ("s:x=a@0 s:x=b@1 p:x=a@0 p2?:x=b@1", []),  # a poll that ended in doubt delivers too
        ("s:x=a@0 s:x=b@1 p!:x=b@1", ["1@0"]),  # and so it can convict
        ("s:x=a s:x=b@1 p:x=b@1", []),  # acknowledged, its place unknown
        ("s:x=a s:x=b@1 p:x=b@1 c:x@2", ["1@None"]),
        ("s:x=a@0 s:x=b@1 p:x=b@1,x=z@999", ["1@0"]),
        ("s:x=a@0 s:x=b@5 p:x=a@0,x=z@999", []),  # z was not sent: its offset proves nothing
        ("s:x=a@0 s:x=b@0,x=c@2 p:x=b@0,x=c@2", ["1@0"]),  # its place has another record
        ("s?:x=a,x=b@0 s1:x=c@1 p:x=c@1", []),  # Jepsen's rule: unproven …
        ("s?:x=a,x=b@0 s1:x=c@1 p:x=c@1 p3:x=a@2", ["2@0"]),  # … proven by the read of a
        ("s?:x=a,x=b s1:x=c@1 p:x=c@1,x=a@2 c:x@3", []),  # proven, but b may not have landed
    ],
)
def test_lost_writes(histories: Any, text: str, lost: list[str]) -> None:
    """A record is lost if it was acknowledged, never read, and read past."""
    found = lost_writes(histories.log(text))
    assert [f"{f.value}@{f.offset}" for f in found] == lost


def test_an_operation_in_doubt_is_proven_by_another_key(histories: Any) -> None:
    """A value that was read of one partition proves its whole operation, on all partitions."""
    text = "s?:x=a,y=b@0 s1?:y=c p2:x=a@0 p3:y=c@1"
    assert [f.value for f in lost_writes(histories.log(text, "y"))] == [2]


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        # read by process 9, but not by process 2, which read everything afterwards
        ("s:x=a@0 s:x=b@1 p:x=a@0,x=b@1 p2:x=b@1 c2:x@2", ["1@0 read"]),
        ("s:x=a@0 s:x=b@1 p:x=a@0,x=b@1 p2:x=a@0 c2:x@1", ["2@1 read"]),
        ("s:x=a@0 s:x=b@1 p:x=a@0,x=b@1 p2:x=a@0,x=b@1 c2:x@2", []),
        ("s:x=a@0 s:x=b@1 p:x=a@0,x=b@1 p2:x=b@1", []),  # unknown where process 2 began
        ("s:x=a@0 s:x=b@1 p:x=a@0,x=b@1 p2:x=b@1 c2!:x@2", []),
        ("s:x=a@0 p2:x=a@0 s:x=b@1 p2:x=b@1 c2:x@2", []),  # seen early in the same session
        ("s:x=a@0 p2:x=a@0 s:x=b@1 a2:y a2:x p2:x=b@1 c2:x@2", ["1@0 read"]),  # in another one
        ("s:x=a@0 s:x=b@1 p2:x=b@1 c2:x@2 p:x=a@0", []),  # process 9 still finds it
        ("s?:x=a s1:x=b@1 p:x=a@0,x=b@1 p2:x=b@1 c2:x@2", ["1@0 read"]),  # proven by being read
        ("s:x=a@0 s1:x=b@0 p:x=a@0 p2:x=b@0 c2:x@1", ["1@0 read"]),  # its place has another record
    ],
)
def test_what_was_read_and_vanished_is_lost(histories: Any, text: str, lost: list[str]) -> None:
    """A reader that began at the beginning and came to the end has seen every record."""
    found = lost_writes(histories.log(text))
    assert [f"{f.value}@{f.offset} {f.variant}" for f in found] == lost


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("s:x=a@0 s:x=b@1 d:x@1/1 p2:x=b@1 c2:x@2", []),
        ("s:x=a@0 s:x=b@1 p:x=a@0,x=b@1 d:x@1/1 p2:x=b@1 c2:x@2", []),
        ("s:x=a@0 s:x=b@1 d?:x@1 p2:x=b@1 c2:x@2", []),  # it may have been done
        ("s:x=a@0 s:x=b@1 >d:x@1 p2:x=b@1 c2:x@2", []),
        ("s:x=a@0 s:x=b@1 d!:x@1 p2:x=b@1 c2:x@2", ["1@0"]),  # it was refused
        ("s:x=a@0 s:x=b@1 d:x@1/1 c2:x@2", ["2@1"]),  # no deletion was that far
        ("s:x=a@0 s:x=b@1 d:y@2/2 c2:x@2", ["1@0", "2@1"]),  # that was another log
        ("d:x@2/2 s:x=a@0 s:x=b@2 p2:x=b@2 c2:x@3", ["1@0"]),  # it was not there yet
        ("d?:x@2 s:x=a@0 s:x=b@2 p2:x=b@2 c2:x@3", []),  # unknown when that was
        ("s:x=a s:x=b@1 d:x@1/1 p2:x=b@1 c2:x@2", []),  # its place is unknown
        ("d:x@1/1 s:x=a s:x=b@1 p2:x=b@1 c2:x@2", ["1@None"]),  # but behind what was there
        # a record that is sent after another was shown is behind it
        ("s:x=a@0 s:x=b@1 >s:x=c d:x@1/1 <s:x=c p2:x=b@1 c2:x@3", ["3@None"]),
        ("s:x=a@0 s:x=b@1 >s:x=c d:x@3/3 <s:x=c p2: c2:x@3", []),
        ("s:x=a@0 >s1:x=b@1 >s:x=c d:x@2/2 <s1:x=b@1 <s:x=c p2: c2:x@3", []),
        ("s:x=a s:x=b@1 d:x@0/0 p2:x=b@1 c2:x@2", ["1@None"]),  # no offset is below 0
        ("s:x=a@0 s:x=b@1 d:x@-1/1 p2:x=b@1 c2:x@2", []),  # -1 is the high watermark
        ("s:x=a@0 s:x=b@1 d:x@-1/0 p2:x=b@1 c2:x@2", ["1@0"]),  # which was 0 then
        ("s:x=a@0 s:x=b@1 d?:x@-1 p2:x=b@1 c2:x@2", []),
    ],
)
def test_what_somebody_may_have_deleted_is_not_lost(
    histories: Any, text: str, lost: list[str]
) -> None:
    """A record is not lost if it is below a requested deletion, and was sent before the answer."""
    assert [f"{f.value}@{f.offset}" for f in lost_writes(histories.log(text))] == lost


@pytest.mark.parametrize(
    ("text", "lost"),
    [
        ("s:t-0=a@0 s:t-0=b@1 x:t c2:t-0@2", []),
        ("s:t-0=a@0 s:t-0=b@1 x?:t c2:t-0@2", []),
        ("s:t-0=a@0 s:t-0=b@1 x!:t c2:t-0@2", ["1@0", "2@1"]),
        ("s:t-0=a@0 s:t-0=b@1 x:u c2:t-0@2", ["1@0", "2@1"]),
        ("s:t-0=a@0 s:t-0=b@1 x:t~1 c2:t-0@2", ["1@0", "2@1"]),
    ],
)
def test_nothing_is_lost_with_its_topic(histories: Any, text: str, lost: list[str]) -> None:
    """No record of a topic is lost once its deletion was requested."""
    found = kernel(histories.log(text, "t-0"))
    assert [f"{f.value}@{f.offset}" for f in found] == lost


@pytest.mark.parametrize(
    ("text", "ops", "why"),
    [
        (
            "s4:x=a@0 s5:x=b@1 p:x=b@1",
            (1, 5),
            "value 1 was acknowledged to process 4 at offset 0 at 1.000 s; process 9 read the"
            " later offset 1 at 5.000 s, and no process ever read 1",
        ),
        (
            "s4:x=a@0 s5:x=b@0 p:x=b@0",
            (1, 5),
            "value 1 was acknowledged to process 4 at offset 0 at 1.000 s; but offset 0 holds"
            " value 2, read by process 9 at 5.000 s",
        ),
        (
            "s4:x=a@0 c:x@0",
            (1, 3),
            "value 1 was acknowledged to process 4 at offset 0 at 1.000 s; process 9 read the log"
            " from its beginning to its end, position 0, until 3.000 s, and did not receive it",
        ),
        (
            "s4:x=a@0 p3:x=a@0 c:x@0",
            (1, 3, 5),
            "value 1 was acknowledged to process 4 at offset 0 at 1.000 s and read by process 3 at"
            " 3.000 s; process 9 read the log from its beginning to its end, position 0, until"
            " 5.000 s, and did not receive it",
        ),
        (
            "s4?:x=a@0,x=b s5:x=c@1 p:x=c@1,x=b@2",
            (1, 5),
            "value 1 of process 4, in doubt, was proven by a reader at offset 0 at 1.000 s;"
            " process 9 read the later offset 1 at 5.000 s, and no process ever read 1",
        ),
    ],
)
def test_a_loss_names_its_witnesses(
    histories: Any, text: str, ops: tuple[int, ...], why: str
) -> None:
    """A loss names the sending operation, the events that show it, and all names in a sentence."""
    (found,) = lost_writes(histories.log(text))
    assert (found.ops, found.why) == (ops, why)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("s:x=a@0 s:x=b@1 p:x=a@0,x=b@1", []),
        ("s:x=a@0 s:x=b@1 p:x=a@0", ["unseen-unchecked 2"]),
        ("s:x=a@0 s:x=b@1 p:x=a@0 c:x@1", []),  # that is a loss
        ("s:x=a@0 s?:x=b@1 p:x=a@0", []),
        ("s:x=a", ["unseen-unchecked 1"]),
        ("s:x=a@0" + 14 * " p:" + " p:x=a@0", []),
        ("s:x=a@0" + 15 * " p:" + " p:x=a@0", ["unseen-delayed 1"]),
    ],
)
def test_unseen(histories: Any, text: str, expected: list[str]) -> None:
    """Unread records are unchecked where no reader came that far, and late after half a minute."""
    assert [f"{f.anomaly} {f.value}" for f in unseen(histories.log(text))] == expected
