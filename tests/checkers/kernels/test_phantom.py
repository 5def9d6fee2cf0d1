from typing import Any

import pytest

from checkers.kernels.phantom import aborted_reads, misrouted, phantoms


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s:x=a@0 p:x=a@0", []),
        ("s?:x=a p:x=a@0", []),  # it was written
        (">s:x=a p:x=a@0", []),  # it was written, but not completed
        ("s!:x=a p:x=a@0", []),  # that is G1a
        ("s:x=a@0 p:x=a@0,x=z@1", ["26 at (1,)"]),
        ("s:x=a@0 p!:x=z@1", ["26 at (1,)"]),
        ("s:x=a@0 p:x=z@1 p2:x=z@1,x=z@2", ["26 at (1, 2)"]),
    ],
)
def test_phantoms(histories: Any, text: str, found: list[str]) -> None:
    """A value that no client tried to write is a phantom."""
    assert [f"{f.value} at {f.also}" for f in phantoms(histories.log(text))] == found


@pytest.mark.parametrize(
    ("text", "anomalies"),
    [
        ("s:x=a@0 s:y=b@0 p:x=a@0,x=b@1", ["misrouted"]),
        ("s:x=a@0 s:y=b@0 s:z=b@0 p:x=a@0,x=b@1", ["phantom"]),  # two homes are possible
        ("s:x=a@0 s:y=b@0 p:x=a@0,x=c@1", ["phantom"]),
    ],
)
def test_misrouted(histories: Any, text: str, anomalies: list[str]) -> None:
    """A phantom that was sent to one other partition is misrouted."""
    tables = histories.tables(text)
    found = phantoms(histories.log(text))
    named = misrouted(tables, found)
    assert [f.anomaly for f in named] == anomalies


def test_a_misrouted_record_names_its_home(histories: Any) -> None:
    """A misrouted record names its send first, and the partition that it was for."""
    tables = histories.tables("s:y=b@0 p:x=b@1")
    found = phantoms(histories.log("s:y=b@0 p:x=b@1"))
    (named,) = misrouted(tables, found)
    assert named.ops == (1, 3)
    assert named.why.endswith(
        "no process tried to write 2 to this partition, but event 1 sent it to y"
    )


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("s!:x=a p:x=a@0", ["1 send"]),
        ("s!:x=a p:x=b@0", []),
        ("s?:x=a p:x=a@0", []),
        ("s!:x=a,x=b p:x=b@0", ["2 send"]),
        ("s!:x=a p!:x=a@0", ["1 send"]),  # by a failed poll, too
    ],
)
def test_aborted_reads(histories: Any, text: str, found: list[str]) -> None:
    """A poll never returns a record whose send certainly failed."""
    results = aborted_reads(histories.log(text))
    assert [f"{f.value} {f.variant}" for f in results] == found
