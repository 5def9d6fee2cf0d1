import random
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from checkers.kernels import transactions
from model.op import Op


def told(histories: Any, text: str | list[Op]) -> list[str]:
    found = transactions.kernel(histories.tables(text))
    return [f"{f.anomaly} {f.key}={f.value} {f.ops}" for f in found]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("t:+x=a@0|x=a@0", ["precommitted-read x=1 (1,)"]),
        ("t:+x=a@0|x=b@1 s:x=b@1", []),
        ("t:+x=a@0|y=a@0 s:y=a@0", []),  # the same value of another key
        ("t!:+x=a@0|x=a@0", ["precommitted-read x=1 (1,)"]),  # whatever became of it
        ("t?:+x=a@0,+x=b@1|x=a@0,x=b@1", ["precommitted-read x=1 (1,)"]),  # once
        ("s:x=a@0 p:x=a@0", []),
    ],
)
def test_precommitted_reads(histories: Any, text: str, found: list[str]) -> None:
    """What a transaction has sent it must not read."""
    assert told(histories, text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        # the transaction reads b, which was not even sent when its own a was read
        (">t1:+x=a@0|y=b@0 p:x=a@0 s:y=b@0 <t1:+x=a@0|y=b@0", ["dirty-read x=1 (5, 2, 4)"]),
        # b may have been sent before a was read
        (">t1:+x=a@0|y=b@0 >s:y=b@0 p:x=a@0 <s:y=b@0 <t1:+x=a@0|y=b@0", []),
        # its second record has b before it in the log
        (
            ">t1:+x=a@0,+y=c@1 p:x=a@0 s:y=b@0 <t1:+x=a@0,+y=c@1 p:y=b@0,y=c@1",
            ["dirty-read x=1 (5, 2, 4)"],
        ),
        (">t1:+x=a@0,+y=c@0 p:x=a@0 s:y=b@1 <t1:+x=a@0,+y=c@0 p:y=c@0,y=b@1", []),
        # nobody read where they lie: an acknowledgement alone is no place
        (">t1:+x=a@0,+y=c@1 p:x=a@0 s:y=b@0 <t1:+x=a@0,+y=c@1", []),
        # whoever read it, and whatever is known of its end
        (">t1:+x=a@0|y=b@0 p!:x=a@0 s:y=b@0 <t1?:+x=a@0|y=b@0", ["dirty-read x=1 (5, 2, 4)"]),
        (">t1:+x=a@0|y=b@0 p:x=a@0 s:y=b@0 <t1!:+x=a@0|y=b@0", []),  # that is G1a
        # a plain send is there at once
        (">s1:x=a@0 p:x=a@0 s:y=b@0 <s1:x=a@0 p:y=b@0", []),
    ],
)
def test_dirty_reads(histories: Any, text: str, found: list[str]) -> None:
    """What was read of a transaction that does something later still was not committed."""
    assert told(histories, text) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("i1:t@7.0 i2:t@7.1 t1:+x=a@0", ["zombie-write x=1 (3, 5)"]),
        ("i1:t@7.0 i2:u@8.0 t1:+x=a@0", []),
        ("i1:t@7.0 i2:t@7.1 t1!:+x=a@0", []),
        ("i1:t@7.0 i2:t@7.1 t2:+x=a@0", []),
        ("i1:t@7.0 t1:+x=a@0 i2:t@7.1", []),
        ("i1:t@7.0 i2?:t@7.1 t1:+x=a@0", []),  # nobody knows whether it was taken over
        # who takes over later counts
        ("i2:t@7.0 i1:t@7.1 t1:+x=a@0", []),
        (">i1:t@7.0 >i2:t@7.1 <i1:t@7.0 <i2:t@7.1 t1:+x=a@0", []),  # nobody knows who was later
        # in doubt, until somebody reads it
        ("i1:t@7.0 i2:t@7.1 t1?:+x=a@0", []),
        ("i1:t@7.0 i2:t@7.1 t1?:+x=a@0 p:x=a@0", ["zombie-write x=1 (3, 5)"]),
        # it began before, and was open still
        (
            "i1:t@7.0 >t1:+x=a@1 i2:t@7.1 s:x=b@0 <t1:+x=a@1 p:x=b@0,x=a@1",
            ["zombie-write x=1 (4, 7)"],
        ),
        ("i1:t@7.0 >t1:+x=a@0 i2:t@7.1 s:x=b@1 <t1:+x=a@0 p:x=a@0,x=b@1", []),
        (
            "i1:t@7.0 >t1:+x=a@0|y=b@0 i2:t@7.1 s:y=b@0 <t1:+x=a@0|y=b@0",
            ["zombie-write x=1 (4, 7)"],
        ),
        # it read that after it was fenced, but its record was there before, committed or not
        (
            "i1:t@7.0 >t1:+x=a@0|y=b@0 i2:t@7.1 s:y=b@0 <t1?:+x=a@0|y=b@0 p:x=a@0",
            [],
        ),
        # it took its id back
        ("i1:t@7.0 i2:t@7.1 i1:t@7.2 t1:+x=a@0", []),
    ],
)
def test_zombie_writes(histories: Any, text: str, found: list[str]) -> None:
    """Who was fenced cannot commit any more."""
    assert told(histories, text) == found


def test_they_argue(histories: Any) -> None:
    """With who, what and when."""
    text = ">t1:+x=a@0|y=b@0 p:x=a@0 s:y=b@0 <t1:+x=a@0|y=b@0"
    (found,) = transactions.kernel(histories.tables(text))
    assert found.why == (
        "process 9 read value 1 at 2.000 s, and the transaction of process 1 that had sent it was"
        " open still: later, at 3.000 s, process 0 began to send what that transaction read before"
        " its end"
    )
    (found,) = transactions.kernel(histories.tables("i1:t@7.0 i2:t@7.1 t1:+x=a@0"))
    assert found.why == (
        "process 2 had taken over the transactional id t from process 1 at 3.000 s, yet value 1 of"
        " a transaction of the latter was acknowledged, which began after that"
    )


class Log:
    """Two partitions, transactions that act step by step, readers that see what they may."""

    def __init__(self, rng: random.Random, *, isolated: bool) -> None:
        self.rng, self.isolated = rng, isolated
        self.logs: dict[str, list[tuple[int, int]]] = {"x": [], "y": []}
        """By key: value and transaction, or process of a plain send."""
        self.open: set[int] = set()
        self.aborted: set[int] = set()
        self.events: list[Op] = []
        self.next_value = 0

    def note(self, process: int, kind: Any, f: str, value: Any) -> None:
        at = len(self.events)
        self.events.append(Op(index=at, time_ns=at, process=process, type=kind, f=f, value=value))

    def read(self, key: str) -> list[list[int]]:
        """All that a reader of this isolation is given."""
        given = []
        for offset, (value, sender) in enumerate(self.logs[key]):
            if self.isolated and sender in self.open:
                break
            if not self.isolated or sender not in self.aborted:
                given.append([offset, value])
        return given

    def append(self, key: str, sender: int) -> list[Any]:
        self.next_value += 1
        self.logs[key].append((self.next_value, sender))
        return ["send", key, [len(self.logs[key]) - 1, self.next_value]]

    def history(self, steps: int) -> list[Op]:
        running: dict[int, list[Any]] = {}
        for process in range(steps):
            what = self.rng.random()
            if what < 0.3:
                self.note(process, "invoke", "txn", [["poll"]])
                running[process] = []
                self.open.add(process)
            elif what < 0.4:
                self.note(process, "invoke", "poll", [["poll"]])
                polled = {key: self.read(key) for key in self.logs}
                self.note(process, "ok", "poll", [["poll", polled]])
            elif what < 0.5:
                sent = self.append(self.rng.choice("xy"), process)
                self.note(process, "invoke", "send", [["send", sent[1], sent[2][1]]])
                self.note(process, "ok", "send", [sent])
            elif running:
                self.step(running, self.rng.choice(sorted(running)))
        for process in sorted(running):
            self.end(running, process)
        self.note(steps, "invoke", "poll", [["poll"]])
        self.note(steps, "ok", "poll", [["poll", {key: self.read(key) for key in self.logs}]])
        return self.events

    def step(self, running: dict[int, list[Any]], process: int) -> None:
        what = self.rng.random()
        if what < 0.4:
            running[process].append(self.append(self.rng.choice("xy"), process))
        elif what < 0.7:
            running[process].append(["poll", {key: self.read(key) for key in self.logs}])
        else:
            self.end(running, process)

    def end(self, running: dict[int, list[Any]], process: int) -> None:
        kind = self.rng.choice(("ok", "ok", "fail", "info"))
        self.open.discard(process)
        if kind == "fail" or (kind == "info" and self.rng.random() < 0.5):
            self.aborted.add(process)
        self.note(process, kind, "txn", running.pop(process))


@settings(max_examples=100, deadline=None)
@given(st.integers(0, 2**32), st.integers(1, 60))
def test_isolated_transactions_show_nothing(histories: Any, seed: int, steps: int) -> None:
    """However they interleave, whatever is in doubt."""
    assert told(histories, Log(random.Random(seed), isolated=True).history(steps)) == []


def test_transactions_that_are_not_isolated_show(histories: Any) -> None:
    """The near miss: the same world, whose readers are given everything."""
    seen: set[str] = set()
    for seed in range(10):
        events = Log(random.Random(seed), isolated=False).history(60)
        seen |= {line.split()[0] for line in told(histories, events)}
    assert seen == {"precommitted-read", "dirty-read"}
