from pathlib import Path

import pytest

from model import node_sign
from model.history import BadHistory
from model.node_sign import NodeSign

SIGN = NodeSign(
    node="broker-1", kind="out-of-memory", time_ns=7, last_ns=9, count=2, line="a\u2028b"
)


def test_signs_are_read_as_they_were_written(tmp_path: Path) -> None:
    """Signs are read as they were written, with or without a time."""
    path = tmp_path / node_sign.FILE
    bare = NodeSign(node="zookeeper", kind="jvm-crash", line="hs_err_pid7.log: SIGBUS")
    path.write_bytes(node_sign.encode(SIGN) + node_sign.encode(bare))
    assert node_sign.read(path) == (SIGN, bare)


def test_a_run_without_the_file_has_no_signs(tmp_path: Path) -> None:
    """Simulated runs, and runs of earlier versions, have no file."""
    assert node_sign.read(tmp_path / node_sign.FILE) == ()


@pytest.mark.parametrize(
    "line", [b"{}", b'{"node":"a","kind":"rumour","line":""}', b"\xff", b'{"node":"broker-1"']
)
def test_a_line_that_is_no_sign_is_refused(tmp_path: Path, line: bytes) -> None:
    """A line that is no sign is refused with its number."""
    path = tmp_path / node_sign.FILE
    path.write_bytes(node_sign.encode(SIGN) + line + b"\n")
    with pytest.raises(BadHistory, match=r"node-signs.jsonl, line 2"):
        node_sign.read(path)
