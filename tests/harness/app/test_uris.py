"""What a user names is a path of this machine, or a URI."""

from pathlib import Path

import pytest

from harness.app.refused import Refused
from harness.app.uris import Uri, location


@pytest.mark.parametrize(
    "text", ["s3a://bucket/a/*/history.jsonl.gz", "hdfs:/runs/a", "abfss://c@a.dfs.core/x"]
)
def test_a_uri(text: str) -> None:
    """A scheme of at least two letters and an absolute path make a URI, which is not changed."""
    found = location(text)
    assert isinstance(found, Uri)
    assert found == text


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ("results/run", "results/run"),
        ("/a//b", "/a/b"),
        ("c:/x", "c:/x"),
        ("note: /x", "note: /x"),
        ("file:/a/b", "/a/b"),
        ("file:///a/*/b%20c", "/a/*/b%20c"),
        ("FILE://localhost/a", "/a"),
    ],
)
def test_a_path(text: str, path: str) -> None:
    """A file: URI of this machine is its path, percent signs included."""
    found = location(text)
    assert isinstance(found, Path)
    assert found == Path(path)


def test_a_path_that_looks_like_a_uri(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file that exists is judged."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hdfs:").mkdir()
    (tmp_path / "hdfs:" / "x").touch()
    assert not isinstance(location("hdfs:/x"), Uri)
    assert isinstance(location("hdfs:/y"), Uri)


def test_a_file_of_another_machine() -> None:
    """The host of a file: URI is not ignored."""
    with pytest.raises(Refused, match="no host other"):
        location("file://other/a")
