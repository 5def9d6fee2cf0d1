"""A template says where the numbers of a line are, and only plain sends and polls have one."""

import pytest

from checkers.line_templates import NONE, Key, MicroOp, Records, template

BEGIN = b'{"index":0,"time_ns":0,"process":0,"type":"ok","f":"txn","value":'


def test_a_template_has_the_places_of_all_numbers() -> None:
    """Each number of a line has one place."""
    found = template(BEGIN + b'[["send","t0-0",[0,0]],["poll",{"x":[[0,0]]}],["delay",null,0]]}')
    assert found is not None
    assert (found.numbers, found.heads, found.type, found.f, found.error) == (
        *(10, (0, 1, 2)),
        *(1, "txn", None),
    )
    assert found.micro_ops == (
        MicroOp("send", Key(("t", "-", ""), (3, 4)), 5, 6),
        MicroOp("poll", None),
        MicroOp("delay", None, 9),
    )
    assert found.records == (Records(1, Key(("x",), (NONE, NONE)), 7),)


@pytest.mark.parametrize(
    "value",
    [
        b'[["send","x",-0]]',
        b'[["send","x",0.0]]',
        b'[["send","x",0,0]]',
        b'[["send","x[",0]]',
        b'[["send","x\\u0000",0]]',
        b'[["send","a0b0c0",0]]',
        b'[["poll",{"x":[[0,0],[0,0]]}]]',
        b'[["poll",{"x":[]}]]',
        b'[["poll",{"x":[[0,0]],"x":[[0,0]]}]]',
        b'[["commit","g",{"x":0},"sync"]]',
        b"null",
        b'[],"error":"0"',
        b'[],"node":"n"',
        b'[],"index":0',
        b"[]}{",
    ],
)
def test_other_lines_have_no_template(value: bytes) -> None:
    """What is rejected, ignored or kept in another way has no template."""
    assert template(BEGIN + value + b"}") is None
    assert template(BEGIN + b"[]}") is not None
