"""Compressed histories are judged like plain ones."""

import bz2
import gzip
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from harness.app import check, unpacking
from model.history import BadHistory

LINES = b"""\
{"index":0,"time_ns":1,"process":0,"type":"invoke","f":"send","value":[["send","x-0",1]]}
{"index":1,"time_ns":2,"process":0,"type":"ok","f":"send","value":[["send","x-0",[0,1]]]}
{"index":2,"time_ns":3,"process":1,"type":"invoke","f":"poll","value":[["poll"]]}
{"index":3,"time_ns":4,"process":1,"type":"ok","f":"poll","value":[["poll",{"x-0":[[0,9]]}]]}
"""
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
}


@pytest.mark.parametrize("ending", PACKED)
def test_a_compressed_history_has_the_verdict_of_the_plain_one(tmp_path: Path, ending: str) -> None:
    """The endings of the name say what the file is; nothing remains of the unpacked text."""
    (tmp_path / "history.jsonl").write_bytes(LINES)
    packed = tmp_path / f"history.jsonl.{ending}"
    packed.write_bytes(PACKED[ending](LINES))
    here, there = (check.judge(path, inline=True) for path in (tmp_path / "history.jsonl", packed))
    assert here.anomalies == there.anomalies == {"phantom": 1}
    assert here.contract == there.contract
    assert [path.name for path in tmp_path.iterdir()] == ["history.jsonl", packed.name]


@pytest.mark.parametrize("ending", PACKED)
def test_a_wrong_line_is_named_in_the_compressed_file(tmp_path: Path, ending: str) -> None:
    """A refusal names the user's file, and the line of its text."""
    packed = tmp_path / f"history.jsonl.{ending}"
    packed.write_bytes(PACKED[ending](LINES.replace(b'"ok","f":"poll"', b'"done","f":"poll"')))
    with pytest.raises(BadHistory) as refused:
        check.judge(packed, inline=True)
    assert str(refused.value).startswith(f"{packed}, line 4: ")
    assert "faultline-unpacked" not in str(refused.value)


@pytest.mark.parametrize("ending", PACKED)
def test_a_file_that_is_not_compressed_or_cut_off_is_refused(tmp_path: Path, ending: str) -> None:
    """Half of a history is never judged as if it were all."""
    path = tmp_path / f"history.jsonl.{ending}"
    for data in (LINES, PACKED[ending](LINES)[:-9]):
        path.write_bytes(data)
        with pytest.raises(BadHistory, match="cannot be unpacked") as refused:
            check.judge(path, inline=True)
        assert "\n" not in str(refused.value)


def test_a_compressed_parquet_file_is_refused(tmp_path: Path) -> None:
    """Parquet files are compressed within."""
    path = tmp_path / "history.parquet.gz"
    path.write_bytes(gzip.compress(b"x"))
    with pytest.raises(BadHistory, match="unpack it first"), unpacking.plain(path):
        pass
