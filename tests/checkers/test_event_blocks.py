"""Lines that are added by templates give the same table as events that are added one by one."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bench import judging
from checkers import event_blocks, jsonl
from checkers.event_blocks import EventBlocks
from checkers.events import EventColumns
from model import history
from model.history import BadHistory

NEVER = 1 << 60
NUMBERS = st.sampled_from((0, 1, 7, 12, 99_999_999, 100_000_000, 10**16, 10**17 + 3, 10**18 - 1))
MANY = NUMBERS | st.integers(0, 10**18)
KEYS = st.sampled_from(("x", "x-0", "x-1", "x-127", "x-128", "t0-3", "t1-3", "t1-30", "é-2", "7"))


def send(key: str, value: int) -> list[Any]:
    return ["send", key, value]


MICRO_OPS = st.one_of(
    st.builds(send, KEYS, MANY),
    st.builds(lambda key, offset, value: ["send", key, [offset, value]], KEYS, MANY, MANY),
    st.builds(lambda key, value: ["send", key, [None, value]], KEYS, MANY),
    st.just(["poll"]),
    st.builds(
        lambda polled: ["poll", polled],
        st.dictionaries(KEYS, st.lists(st.tuples(MANY, MANY), max_size=4), max_size=3),
    ),
    st.sampled_from((["abort"], ["delay", None, 5], ["delay", None, 50])),
)
ODD_VALUES: list[Any] = [
    None,
    [],
    [["catch-up", "x-0", 1, 2]],
    [["commit", "g", {"x-0": 3, "new-7": None}, "sync"]],
    [["assigned", "g", 1, {"x-1": 5}]],
    [["watermarks", "x-1", {"high": 4, "hgih": 3}]],
    [["send", "x", 1.0]],
    [["send", "x", True]],
    [["send", "x", -1]],
    [["send", "x", [-1, 4]]],
    [["send", "x", 1 << 63]],
    [["send", "x", [1 << 64, 1]]],
    [["send", "x", 10**18]],
    [["send", "x", [1, 2], [3, 4]]],
    [["send", "x-1", [1, 2], 3]],
    [["send", "x[1,2],[3", 4]],
    [["send", 'say "x"', 4]],
    [["send", "x-007", 4]],
    [["send", "x-9999999999", 4]],
    [["send", "a1b2c3", 4]],
    [["poll", None]],
    [["poll", {}]],
    [["poll", {"x-0": []}]],
    [["poll", {"x-0": [[-1, 5]]}]],
    [["poll", {"x-0": [[None, 5], [2, 6]]}]],
    [["poll", {"x-0": [[1, 2], [3]]}]],
    [["poll", {"x-0": [[1, 2], [3, 4, 5]]}]],
    [["poll", {":[[1,2],[3,4]]": [[1, 2], [3, 4]]}]],
    [["poll", {"x-0": [[1, 2], [3, 4]]}, 5]],
    [["poll", [[1, 2], [3, 4]]]],
    [["poll", {"x-0": [[1, 2], "ab"]}]],
    [["unknown", 1]],
    ["x-0"],
    "x-0",
    {"at": [[1, 2], [3, 4]]},
]
CHANGES = (
    ("", ""),
    ('"index"', '"node":"n1","index"'),
    ('"index":', '"index":5,"index":'),
    ('"process":', '"process":-'),
    ('"process":', '"process":0'),
    ('"process":', '"process":99999999999'),
    ('"time_ns":', '"time_ns":1.'),
    ('"time_ns":', '"time_ns":1e'),
    ('"time_ns":', '"time_ns":1234567890123'),
    ('"x-0"', '"x\\u002d0"'),
    ('"x-0"', '"x-1"'),  # a poll may have this key already
    (",", ", "),
    ("}", "}\r"),
    ("}", "}\n"),
    ("}", ""),
    ("}", "}{}"),
    ("[", "[]"),
    ("],[", "],"),
    ('"f":"', '"f":"un'),
    ('"type":', '"error":"Timeout","type":'),
    ('"type":', '"error":"Timeout after 5 s","type":'),
    ('"type":', '"error":null,"type":'),
    ('"type":', '"error":7,"type":'),
    ("é", "\ud800"),
)


@st.composite
def histories(draw: st.DrawFn) -> bytes:
    """A history whose lines repeat a few values with other numbers; some lines are odd."""
    rng = draw(st.randoms(use_true_random=False))
    plain = draw(st.lists(st.lists(MICRO_OPS, max_size=4), min_size=1, max_size=5))
    odd = draw(st.lists(st.sampled_from(ODD_VALUES), max_size=3))
    changes = draw(st.lists(st.sampled_from(CHANGES), max_size=2))
    lines = []
    for index in range(draw(st.integers(1, 40))):
        is_odd = bool(odd) and rng.random() < 0.1
        event = {
            "index": index,
            "time_ns": index * rng.choice((1, 10**7, 10**13)),
            "process": rng.choice((0, 5, 100, 2**31 - 1)),
            "type": rng.choice(("invoke", "ok", "info", "fail")),
            "f": rng.choice(("send", "poll", "txn")),
            "value": rng.choice(odd) if is_odd else other_numbers(rng.choice(plain), rng),
        }
        if is_odd and isinstance(event["value"], dict):
            event |= {"process": -1, "f": "kill"}
        line = json.dumps(event, separators=(",", ":"), ensure_ascii=False)
        if changes and rng.random() < 0.1:
            line = line.replace(*rng.choice(changes), rng.choice((1, 1, -1)))
        lines.append(line)
    return "\n".join(lines).encode("utf-8", "surrogatepass") + draw(st.sampled_from((b"\n", b"")))


def other_numbers(value: Any, rng: random.Random) -> Any:
    """Return a value with other numbers, and with other lengths of the lists of records."""
    if type(value) is int:
        return rng.choice((value, rng.randrange(2000), rng.randrange(10**18)))
    if isinstance(value, dict):
        return {
            key: other_numbers(inner, rng) * rng.choice((1, 1, 2)) for key, inner in value.items()
        }
    return (
        [other_numbers(inner, rng) for inner in value] if isinstance(value, list | tuple) else value
    )


def outcome(path: Path, seen_min: int, chunk_bytes: int) -> tuple[Any, ...]:
    """Return what is read: all columns, codes and notes, or the message of the refusal."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(event_blocks, "_SEEN_MIN", seen_min)
        patch.setattr(event_blocks, "_PAUSE_MAX", 0)
        patch.setattr(jsonl, "CHUNK_BYTES", chunk_bytes)
        try:
            table = jsonl.read(path, lambda done: None)
        except BadHistory as error:
            return (str(error),)
    return (table.to_pylist(), table.schema.metadata, *dictionaries(table))


def dictionaries(table: pa.Table) -> Iterator[list[str]]:
    """Yield the names of all columns in the order of their codes."""
    arrays = {name: table[name].combine_chunks() for name in table.column_names}
    micro_ops = arrays["value"].values
    fields = ("op", "key", "name")
    for array in (
        *(arrays[name] for name in ("type", "f", "error")),
        *(micro_ops.field(name) for name in fields),
        micro_ops.field("records").values.field("key"),
    ):
        yield array.dictionary.to_pylist()


EVENT = b'{"index":%d,"time_ns":5,"process":%d,"type":"ok","f":"poll","value":%s}'


def events(*values: bytes) -> bytes:
    return b"\n".join(EVENT % (n, n, value) for n, value in enumerate(values)) + b"\n"


@settings(max_examples=100)
@given(histories(), st.sampled_from((300, 2000, 1 << 18)))
@example(events(b'[["poll",{"x-1":[[0,1],[1,2]],"x-1":[[2,3]]}]]'), 300)
@example(events(b'[["poll",{"x-1":[[0,1]],"x-2":[[2,3]]}]]', b'[["poll"]]'), 300)
@example(events(b'[["send","x",[1,2],[3,4]]]', b'[["send","x",[3,4]]]'), 300)
@example(events(b'[["send","x",[3,4]]]', b'[["send","x",[1,2],[3,4]]]'), 300)
@example(events(b'[["send","x",[1,2],[3,4]],["poll",{"x":[[5,6]]}]]'), 300)
@example(events(b'[["send","x",4]]', b'[["send","x",04]]'), 300)
@example(events(b'[["send","x-4",4]]', b'[["send","x-04",4]]'), 300)
def test_templates_change_nothing(
    tmp_path_factory: pytest.TempPathFactory, text: bytes, chunk_bytes: int
) -> None:
    """A history is read with the same columns, codes and notes, or refused with the same words."""
    path = tmp_path_factory.mktemp("history") / "history.jsonl"
    path.write_bytes(text)
    assert outcome(path, 1, chunk_bytes) == outcome(path, NEVER, chunk_bytes)


def test_a_history_of_the_harness_is_read_by_templates(tmp_path: Path) -> None:
    """Nearly all lines have a template, and give the same columns."""
    path = tmp_path / "history.jsonl"
    history.write(path, judging.plain(3000))
    assert outcome(path, 16, 1 << 16) == outcome(path, NEVER, 1 << 16)
    left: list[bytes] = []
    columns = EventColumns()

    def add(columns: EventColumns, lines: bytes) -> None:
        left.append(lines)
        columns.add([jsonl.EVENT.decode(line) for line in lines.split(b"\n")])

    lines = path.read_bytes().strip()
    blocks = EventBlocks(columns, add)
    blocks.add(lines)
    blocks.add(lines)
    assert len(columns.index) == 2 * (lines.count(b"\n") + 1)
    assert sum(map(len, left)) < len(lines) / 5


def test_other_lines_are_not_tried_again_and_again() -> None:
    """After a block without templates, an increasing number of blocks is left to the caller."""
    left: list[bytes] = []
    blocks = EventBlocks(EventColumns(), lambda columns, lines: left.append(lines))
    plain = b"\n".join([EVENT % (n, n, b'[["poll"]]') for n in range(40)])
    for _ in range(3):
        blocks.add(b"{}")
    assert left == [b"{}"] * 3
    for _ in range(4):
        blocks.add(plain)
    assert left == [b"{}"] * 3 + [plain] * 3
