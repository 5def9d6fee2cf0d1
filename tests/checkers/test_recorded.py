"""Histories of any system are read, whatever their format, or refused with a line."""

from pathlib import Path

import pytest

from checkers import recorded
from model.history import BadHistory
from model.op import NEMESIS, Op

EVENTS = [
    Op(index=0, time_ns=5, process=1, type="invoke", f="write", value=[1, None]),
    Op(index=1, time_ns=7, process=1, type="ok", f="write", value=[1, None]),
]
JSON = [
    '{"type": "invoke", "f": "write", "process": 1, "time": 5, "value": [1, null]}',
    '{"type": "ok", "f": "write", "process": 1, "time": 7, "value": [1, null]}',
]
EDN = [
    "{:type :invoke, :f :write, :process 1, :time 5, :value [1 nil]}",
    "{:type :ok, :f :write, :process 1, :time 7, :value [1 nil]}",
]


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(JSON),
        f"[{','.join(JSON)}]",
        "[\n" + ",\n".join(JSON) + "\n]\n",
        "\n".join(EDN),
        f"[{' '.join(EDN)}]",
        "#jepsen.history.Op" + "\n#jepsen.history.Op".join(EDN),
    ],
)
def test_every_format_has_the_same_events(tmp_path: Path, text: str) -> None:
    """JSON and EDN, in lines or in one list, are the same history."""
    path = tmp_path / "history"
    path.write_text(text)
    assert recorded.read(path).events == EVENTS


def test_a_log_of_etcd() -> None:
    """A write that timed out is in doubt, and an answer of nil is the register's first value."""
    lines = [
        "INFO  jepsen.util - 0\t:invoke\t:read\tnil",
        "INFO  jepsen.util - 0\t:ok\t:read\tnil",
        'INFO  jepsen.util - :nemesis\t:info\t:start\t"Cut off"',
        "INFO  jepsen.util - 1\t:invoke\t:cas\t[1 2]",
        "INFO  jepsen.util - 1\t:fail\t:cas\t:timed-out",
        "INFO  jepsen.util - 2\t:invoke\t:read\tnil",
        "INFO  jepsen.util - 2\t:fail\t:read\t:timed-out",
    ]
    found = recorded.parse("\n".join(lines), "log")
    assert found.initial == recorded.NIL
    assert [(e.process, e.type, e.f, e.value) for e in found.events] == [
        (0, "invoke", "read", None),
        (0, "ok", "read", recorded.NIL),
        (1, "invoke", "cas", [1, 2]),
        (1, "info", "cas", None),
        (2, "invoke", "read", None),
        (2, "fail", "read", None),
    ]


def test_a_key_apart_from_the_value() -> None:
    """The maps of Porcupine's tests name a key: it becomes a part of the value."""
    (event,) = recorded.parse(
        '{:process 0, :type :invoke, :f :put, :key "k", :value "v"}', "x"
    ).events
    assert event.value == ["k", "v"]


@pytest.mark.parametrize(
    "text",
    [
        "{:process :nemesis, :type :info, :f :start}",
        "{:process nil, :type :info, :f :start}",
        '{"process": "nemesis", "type": "info", "f": "start"}',
        '{"process": ":nemesis", "type": "info", "f": "start"}',
        '{"process": null, "type": "info", "f": "start"}',
        '{"process": -1, "type": "info", "f": "start"}',
    ],
)
def test_the_nemesis(text: str) -> None:
    """The nemesis has no number, or its name instead of one."""
    (event,) = recorded.parse(text, "x").events
    assert event.process == NEMESIS


@pytest.mark.parametrize("process", ['"c1"', '"0"', "1.5", "true", "[1]"])
def test_other_processes(process: str) -> None:
    """A client without a number is not the nemesis."""
    with pytest.raises(BadHistory, match=r"x, line 2: process .* is neither a number nor nemesis"):
        recorded.parse(f'{JSON[0]}\n{{"process": {process}, "type": "ok", "f": "read"}}', "x")


@pytest.mark.parametrize(("lines", "end"), [(EDN, "{:type :inv"), (JSON, '{"type": "in')])
def test_a_torn_end_is_left_out(lines: list[str], end: str) -> None:
    """The end of a file whose writer was interrupted is left out, and that is mentioned."""
    found = recorded.parse("\n".join([*lines, end]), "x")
    assert found.events == EVENTS
    assert found.torn == "the end of the file, from line 3 on, is torn and was left out"
    assert recorded.parse("\n".join([*lines, ""]), "x").torn is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (
            '{"type": "ok", "f": "read", "value": 7, "value": 1}',
            'line 1: an object has two fields .* "value"',
        ),
        (f'{JSON[0]}\n{{"type": "ok", "f": "x", "f": "y"}}', 'line 2: .* called "f"'),
        ('{"type": "ok", "f": "read", "value": {"a": 1, "a": 2}}', 'called "a"'),
        ('[{"type": "ok", "f": "read", "f": "read"}]', 'line 1: .* called "f"'),
        ("{:type :ok, :f :read, :f :write}", "a map has two entries with the key f"),
    ],
)
def test_a_field_that_is_given_twice(text: str, message: str) -> None:
    """Two values of one field are refused, also in the last line, as in EDN."""
    with pytest.raises(BadHistory, match=message):
        recorded.parse(text, "x")


def test_fields_of_several_objects() -> None:
    """A field may occur in the value of another one, and colons in texts are none."""
    text = '{"type": "ok", "f": "a:b", "value": [{"f": 1}, {"f": "type:"}]}'
    (event,) = recorded.parse(text, "x").events
    assert (event.f, event.value) == ("a:b", [{"f": 1}, {"f": "type:"}])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "x has no events"),
        ("\n".join([JSON[0], "{", JSON[1]]), "x, line 2: "),
        ('{"type": "done", "f": "read"}', "x, line 1: .* is not an operation with a type"),
        ('{"type": "ok"}', "x, line 1: an operation has no name"),
        ('{"type": "ok", "f": "read", "index": "1"}', "the index is not a whole number"),
        ("\n".join([EDN[0], "}"]), "x, line 2: a } has no opening bracket"),
        ("17", "x, line 1: '17' is not an operation"),
        ("INFO  jepsen.util - 0\t:done\t:read\tnil", "x, line 1: done is not a type"),
        ("INFO  jepsen.util - 0\t:ok\t:read\t[1", "x, line 1: "),
        pytest.param("[" * 5000, "x has no events", id="torn in its first event"),
        ('{"type": "inv', "x has no events"),
    ],
)
def test_what_is_no_history_is_refused(text: str, message: str) -> None:
    """One sentence names the file, the line and the reason."""
    with pytest.raises(BadHistory, match=message):
        recorded.parse(text, "x")


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    """A missing file, and one that is not text, are refused."""
    with pytest.raises(BadHistory, match="cannot be read: No such file"):
        recorded.read(tmp_path / "missing")
    binary = tmp_path / "binary"
    binary.write_bytes(b"\xff\xfe\x00")
    with pytest.raises(BadHistory, match="is not text"):
        recorded.read(binary)
