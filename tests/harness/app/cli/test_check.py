"""``check`` takes URIs of this machine as paths."""

from pathlib import Path

from harness.app.cli.check import check
from model import history
from tests.checkers.conftest import events
from tests.harness.app.cli.conftest import Call


def test_a_pattern_of_file_uris(tmp_path: Path, call: Call) -> None:
    """Each file that it matches is judged in this process."""
    assert check.name == "check"
    for name in ("a", "b"):
        path = tmp_path / name / "history.jsonl"
        path.parent.mkdir()
        history.write(path, events("a:x s:x=a@0 s:x=b@1 p:x=b@1 c:x@2"))
    status, out, err = call("check", f"{tmp_path.as_uri()}/*/history.jsonl", "--inline")
    assert (status, out.count("lost-write 1"), err.count("Traceback")) == (1, 2, 0)
