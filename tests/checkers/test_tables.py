from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers import parse, tables
from checkers.kernels.rows import FAIL, INFO, OK, UNKNOWN
from model.history import BadHistory, encode
from model.op import Op


def silent(done: float) -> None:
    """A progress callback that does nothing."""


def test_operations_join_invocations_with_completions(histories: Any) -> None:
    """Operations join each process's invocations and completions; an uncompleted one is in
    doubt."""
    made = histories.tables(">s1:x=a >s2:x=b <s1:x=a@0 <s2!:x=b >s3:x=c p: p?:")
    operations = made.operations
    assert operations.invoked.tolist() == [0, 1, 4, 5, 7]
    assert operations.op.tolist() == [2, 3, 4, 6, 8]
    assert operations.outcome.tolist() == [OK, FAIL, INFO, OK, INFO]
    assert operations.completed.tolist() == [True, True, False, True, True]


def test_sends_tell_what_was_tried_and_what_came_of_it(histories: Any) -> None:
    """Sends have values, offsets where they were acknowledged, and the outcome of their
    operation."""
    sends = histories.tables("s:x=a@7,x=b s1?:x=c s2!:x=d >s3:x=e").sends
    assert sends.value.tolist() == [1, 2, 3, 4, 5]
    assert sends.offset.tolist() == [7, UNKNOWN, UNKNOWN, UNKNOWN, UNKNOWN]
    assert sends.outcome.tolist() == [OK, OK, INFO, FAIL, INFO]
    assert sends.op.tolist() == [1, 1, 3, 5, 6]


def test_negative_offsets_are_none(histories: Any) -> None:
    """A negative offset, such as the -1001 of a client with acks=0, is an unknown one."""
    asked, done = histories.events("s:x=a@0")
    value = [["send", "x", [-1001, 1]]]
    fields = {f: getattr(done, f) for f in done.__struct_fields__}
    sends = histories.tables([asked, Op(**fields | {"value": value})]).sends
    assert sends.offset.tolist() == [UNKNOWN]


def test_a_completion_that_tells_less_than_was_asked(histories: Any) -> None:
    """Records that only the invocation names were tried, and their outcome is unknown."""
    ops = histories.events("s?:x=a@0,x=b@1 s1?:x=c,x=d s2:x=e@5")
    shorter = [["send", "x", [0, 1]]]
    changed = [
        Op(**{f: getattr(op, f) for f in op.__struct_fields__} | {"value": value})
        for op, value in zip(
            ops,
            [ops[0].value, shorter, ops[2].value, None, ops[4].value, ops[5].value],
            strict=True,
        )
    ]
    sends = histories.tables(changed).sends
    assert sends.value.tolist() == [1, 2, 3, 4, 5]
    assert sends.outcome.tolist() == [INFO, INFO, INFO, INFO, OK]
    assert sends.op.tolist() == [1, 1, 3, 3, 5]


def test_polls_keep_the_order_of_delivery(histories: Any) -> None:
    """Polls keep the order of delivery over partitions, micro-operations and operations."""
    polls = histories.tables("p:x=a@0,x=b@1|y=c@0 p: p!:x=d@2").polls
    assert polls.value.tolist() == [1, 2, 3, 4]
    assert polls.offset.tolist() == [0, 1, 0, 2]
    assert polls.outcome.tolist() == [OK, OK, OK, FAIL]


@pytest.mark.parametrize(
    ("text", "caught_up"),
    [
        ("s:x=a@0 c:x@1", {"x": 1}),
        ("c:x@0 s:x=a@0", {}),  # more was acknowledged afterwards
        (">c:x@0 s:x=a@0 <c:x@1", {}),  # invoked before the acknowledgement
        ("c:x@0 s?:x=a", {"x": 0}),  # nothing was acknowledged
        ("s:x=a@0 c!:x@1", {}),
        ("s:x=a@0 c:x@1 c!:x@1", {"x": 1}),
    ],
)
def test_caught_up(histories: Any, text: str, caught_up: dict[str, int]) -> None:
    """A partition is caught up by a successful catch-up that was invoked after the last
    acknowledgement."""
    made = histories.tables(text)
    found = {made.keys[key]: catch_up.position for key, catch_up in made.caught_up().items()}
    assert found == caught_up


def fault(index: int, kind: Any, id_: int, phase: str, **more: Any) -> Op:
    value = {"id": id_, "phase": phase, "targets": ["broker-1"], **more}
    return Op(index=index, time_ns=index * 10, process=-1, type=kind, f="pause", value=value)


def test_faults_are_bands_with_their_proof(histories: Any) -> None:
    """A fault lasts from its request until it is healed, and is proved only by a measured
    effect."""
    proof = {"effect": {"proved": True, "how": "state T"}}
    made = histories.tables(
        [
            fault(0, "invoke", 1, "apply"),
            fault(1, "info", 1, "apply", **proof),
            fault(2, "invoke", 1, "heal"),
            fault(3, "info", 1, "heal"),
            fault(4, "invoke", 2, "apply"),
        ]
    )
    first, second = made.faults
    assert (first.id, first.from_ns, first.to_ns, first.proved, first.how) == (
        1,
        0,
        30,
        True,
        "state T",
    )
    assert (second.id, second.to_ns, second.proved) == (2, None, False)


def test_a_fault_that_is_tried_again_lasts_until_its_last_mend(histories: Any) -> None:
    """A fault that is tried again lasts from its first request to its last heal, with the last
    effect."""
    tries = [
        fault(0, "invoke", 1, "apply"),
        fault(1, "info", 1, "apply", effect={"proved": False, "how": "no answer"}),
        fault(2, "invoke", 1, "heal"),
        fault(3, "info", 1, "heal", effect={"proved": True, "how": "nothing to mend"}),
        fault(4, "invoke", 1, "apply"),
        fault(5, "info", 1, "apply", effect={"proved": True, "how": "moved"}),
    ]
    (unhealed,) = histories.tables(tries).faults
    assert (unhealed.from_ns, unhealed.to_ns, unhealed.how) == (0, None, "moved")
    (healed,) = histories.tables([*tries, fault(6, "info", 1, "heal")]).faults
    assert (healed.to_ns, healed.proved) == (60, True)


def line(index: int, **changes: Any) -> bytes:
    fields: dict[str, Any] = {"time_ns": 0, "process": 0, "type": "invoke", "f": "send"}
    return encode(Op(index=index, **(fields | {"value": [["send", "x", 1]]} | changes)))


@pytest.mark.parametrize("end", range(1, len(line(1))))
def test_a_torn_last_line_is_left_out(tmp_path: Path, end: int) -> None:
    """A torn last line is left out, wherever it is cut."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(line(0) + line(1)[:end])
    events = tables.read(path, silent).num_rows
    assert events == (2 if end == len(line(1)) - 1 else 1)  # only the line's end is missing


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "has no events"),
        (b"\n\n", "has no events"),
        (b"nonsense\n", "line 1: JSON is malformed"),
        (line(0) + b"{}\n" + line(1), "line 2: Object missing required field `index`"),
        (line(0) + b'{"index": "1"}\n', "line 2: Expected `int`, got `str` - at `$.index`"),
        (line(0).replace(b"invoke", b"maybe"), "line 1: Invalid enum value 'maybe'"),
        (line(0) + line(1)[:30] + b"\n" + line(2), "line 2: JSON is malformed"),
        (
            line(0, value=[["send", "x"]]),
            'line 1: event 0: ["send","x"] does not have the shape ["send", key, value]',
        ),
        (line(0, value=[["send", 3, 4]]), '["send",3,4] does not have the shape'),
        (line(0, value=[["send", "x", "y"]]), "the value of a record must be a whole number"),
        (line(0, value=[["send", "x", 1.5]]), "the value of a record must be a whole number"),
        (line(0, value=[["send", "x", 1 << 63]]), "a number of more than 64 bits"),
        (line(0, value=[["poll", [1]]]), '["poll",[1]] does not have the shape'),
        (line(0, value=[7]), "event 0: 7 is not a list of micro-operations"),
        (line(1) + line(0, process=1), "the index 0 follows 1"),
        (line(0) + line(0, process=1), "the index 0 follows 0"),
        (line(0) + line(1), "process 0 invoked event 1 before its event 0 was completed"),
        (b"\xff\xfe" + line(0), "line 1"),
    ],
)
def test_a_bad_history_is_told_in_one_sentence(tmp_path: Path, text: bytes, message: str) -> None:
    """A bad history is reported in one sentence, with the place and the reason."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(text)
    with pytest.raises(BadHistory) as told:
        tables.tables(tables.read(path, silent))
    assert message in str(told.value)
    assert "\n" not in str(told.value)


def test_blank_lines_are_passed_over(tmp_path: Path) -> None:
    """Blank lines are ignored."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(line(0) + b"\n" + line(1, process=1) + b"\n")
    assert tables.read(path, silent)["index"].to_pylist() == [0, 1]


def test_chunks_end_between_lines(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of any size end between lines, and progress ends at 1."""
    path = tmp_path / "history.jsonl"
    path.write_bytes(b"".join(line(n, process=n) for n in range(20)))
    for size in (1, 50, 100, 1000):
        monkeypatch.setattr(parse, "CHUNK_BYTES", size)
        told: list[float] = []
        assert tables.read(path, told.append)["index"].to_pylist() == list(range(20))
        assert told == sorted(told)
        assert told[-1] == 1.0


@pytest.mark.slow
def test_a_large_file_is_read_by_two_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The halves of a large file fit together, whatever their names are, and a bad line is
    reported."""
    path = tmp_path / "history.jsonl"
    lines = [line(n, process=n, value=[["send", f"x-{n}", n]], error=f"e{n}") for n in range(20)]
    path.write_bytes(b"".join(lines))
    whole = tables.read(path, silent)
    monkeypatch.setattr(parse, "SPLIT_BYTES", 1)
    split = tables.read(path, silent)
    assert split.to_pylist() == whole.to_pylist()
    assert tables.tables(split).sends.value.tolist() == list(range(20))
    path.write_bytes(b"".join([*lines, b"nonsense\n"]))
    with pytest.raises(BadHistory, match="line 21: JSON is malformed"):
        tables.read(path, silent)
    path.write_bytes(b"".join(lines)[:-5])
    assert tables.read(path, silent).num_rows == 19


EVERYTHING = "a:x,y s:x=a@0,x=b s1?:y=c p:x=a@0,x=b@1|y=c@0 s2!:x=d p8?: c:x@2 >s3:x=e"


def everything(histories: Any, tmp_path: Path) -> pa.Table:
    path = tmp_path / "history.jsonl"
    proof = {"effect": {"proved": True, "how": "state T"}}
    ops = histories.events(EVERYTHING)
    end = ops[-1].time_ns
    for phase in (
        fault(len(ops), "invoke", 1, "apply"),
        fault(len(ops) + 1, "info", 1, "apply", **proof),
    ):
        ops.append(msgspec.structs.replace(phase, time_ns=end))
    path.write_bytes(b"".join(map(encode, ops)))
    return tables.read(path, silent)


def same(a: tables.Tables, b: tables.Tables) -> bool:
    columns: list[tuple[Any, Any]] = [
        *zip(a.sends.where(slice(None)), b.sends.where(slice(None)), strict=True),
        *zip(a.polls.where(slice(None)), b.polls.where(slice(None)), strict=True),
    ]
    return all(np.array_equal(one, other) for one, other in columns) and (
        a.faults,
        a.catch_ups,
        a.keys,
    ) == (b.faults, b.catch_ups, b.keys)


def test_parquet_holds_the_same_history(histories: Any, tmp_path: Path) -> None:
    """The tables are the same after a history was written to Parquet and read again."""
    table = everything(histories, tmp_path)
    pq.write_table(table, tmp_path / "history.parquet")
    again = tables.read(tmp_path / "history.parquet", silent)
    assert again.equals(table)
    assert same(tables.tables(again), tables.tables(table))


def test_parquet_has_a_column_for_every_field(histories: Any, tmp_path: Path) -> None:
    """Parquet has a column for every field: micro-operations are structs, and other values are
    JSON."""
    rows = everything(histories, tmp_path).to_pylist()
    assert rows[1]["value"][0] == {
        "op": "assign",
        "key": "x",
        "offset": None,
        "value": None,
        "records": [],
        "name": None,
    }
    assert rows[3]["value"] == [
        {"op": "send", "key": "x", "offset": 0, "value": 1, "records": [], "name": None},
        {"op": "send", "key": "x", "offset": None, "value": 2, "records": [], "name": None},
    ]
    assert rows[7]["value"][1]["records"] == [{"key": "y", "offset": 0, "value": 3}]
    assert rows[-1]["detail"].startswith('{"id":1,"phase":"apply"')


@pytest.mark.spark
def test_other_tools_can_read_and_write_it(histories: Any, spark: Any, tmp_path: Path) -> None:
    """Spark can read ``history.parquet``, and what it writes is the same history."""
    table = everything(histories, tmp_path)
    pq.write_table(table, tmp_path / "history.parquet")
    frame = spark.read.parquet(str(tmp_path / "history.parquet"))
    assert frame.filter("f = 'send' and type = 'ok'").select("value.value").collect() == [([1, 2],)]
    frame.coalesce(1).write.parquet(str(tmp_path / "again"))
    (part,) = (tmp_path / "again").glob("*.parquet")
    assert same(tables.tables(tables.read(part, silent)), tables.tables(table))


def test_a_parquet_file_of_something_else_is_refused(tmp_path: Path) -> None:
    """A Parquet file that is not a history is rejected in one sentence."""
    path = tmp_path / "history.parquet"
    pq.write_table(pa.table({"a": [1]}), path)
    with pytest.raises(BadHistory, match=r"history\.parquet is not a history"):
        tables.read(path, silent)
    path.write_bytes(b"nonsense")
    with pytest.raises(BadHistory, match=r"history\.parquet is not a history"):
        tables.read(path, silent)
