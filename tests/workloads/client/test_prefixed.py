"""Operations reach the brokers with prefixed names, and the history does not have the prefix."""

import asyncio
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from model.op import Op
from workloads.client import prefixed
from workloads.client.prefixed import Prefixed

P = "faultline-00c0ffee-"


@pytest.mark.parametrize(
    ("value", "asked"),
    [
        (["topic0-0", "topic1-2"], [P + "topic0-0", P + "topic1-2"]),
        ([["send", "topic0-0", 7]], [["send", P + "topic0-0", 7]]),
        ([["poll"]], [["poll"]]),
        ([["create-topic", "topic0~1", 3]], [["create-topic", P + "topic0~1", 3]]),
        (
            [["subscribe", "group0", ["a", "b"], {"auto": True, "instance": "one"}]],
            [["subscribe", P + "group0", [P + "a", P + "b"], {"auto": True, "instance": "one"}]],
        ),
        (
            [["delay", None, 10], ["commit", "group0", {"a-0": 5}, "sync"], ["abort"]],
            [["delay", None, 10], ["commit", P + "group0", {P + "a-0": 5}, "sync"], ["abort"]],
        ),
        ([["commit", "group0", None]], [["commit", P + "group0", None]]),
        ([["init", "thread-1"]], [["init", P + "thread-1"]]),
        (None, None),
    ],
)
def test_names_of_each_shape(value: Any, asked: Any) -> None:
    """Partitions, topics, groups and ids get the prefix; values, options and times do not."""
    assert prefixed.added(value, P) == asked
    assert prefixed.removed(asked, P) == value


NAMES = st.from_regex(r"[a-z]{1,8}(~[0-9])?-[0-9]", fullmatch=True)
OFFSETS = st.integers(-1, 1 << 62)
MICRO_OPS = st.one_of(
    st.tuples(st.just("send"), NAMES, OFFSETS).map(list),
    st.tuples(st.just("commit"), NAMES, st.dictionaries(NAMES, OFFSETS), st.just("sync")).map(list),
    st.tuples(st.just("subscribe"), NAMES, st.lists(NAMES)).map(list),
)


@given(st.lists(MICRO_OPS) | st.lists(NAMES))
def test_removing_undoes_adding(value: Any) -> None:
    assert prefixed.removed(prefixed.added(value, P), P) == value


class Recording:
    """A client that keeps what it is asked, and completes each operation with polled records."""

    alive = True

    def __init__(self) -> None:
        self.asked: list[Any] = []
        self.calls: list[str] = []

    async def open(self) -> None:
        self.calls.append("open")

    async def invoke(self, op: Op) -> Op:
        self.asked.append(op.value)
        polled = ["poll", {P + "topic0-0": [[0, 7]]}]
        events = ["assigned", P + "group0", 3, {P + "topic0-0": None}]
        return msgspec.structs.replace(op, type="ok", value=[events, polled])

    async def close(self) -> None:
        self.calls.append("close")


def test_a_client_with_a_prefix() -> None:
    """The history gets the events and records of its own names, at any depth."""
    client = Recording()
    tested = Prefixed(client, P)

    async def run() -> Op:
        await tested.open()
        done = await tested.invoke(
            Op(index=0, time_ns=0, process=1, type="invoke", f="assign", value=["topic0-0"])
        )
        await tested.close()
        return done

    done = asyncio.run(run())
    assert client.asked == [[P + "topic0-0"]]
    assert done.value == [
        ["assigned", "group0", 3, {"topic0-0": None}],
        ["poll", {"topic0-0": [[0, 7]]}],
    ]
    assert (tested.alive, client.calls) == (True, ["open", "close"])
