"""The verb ``trends``: what it prints, its page, and its exit statuses."""

import json
from pathlib import Path

from tests.harness.app.cli.conftest import Call
from tests.harness.app.lake import made_rows
from tests.harness.app.lake.made_rows import rows, slower_from, steady


def test_exit_statuses(tmp_path: Path, call: Call) -> None:
    """1: worse; 0: not; 64: the request is wrong, in one line."""
    worse = made_rows.lake(tmp_path / "worse", rows(range(6), 16, slower_from(3))).folder
    same = made_rows.lake(tmp_path / "same", rows(range(6), 16, steady)).folder
    page = tmp_path / "pages" / "page.html"
    status, out, _ = call("trends", "--lake", str(worse), "--page", str(page))
    assert (status, out.split()[0]) == (1, "WORSE")
    assert page.read_text().startswith("<!doctype html>")
    status, out, _ = call("trends", "--lake", str(same), "--json")
    assert status == 0
    assert {each["verdict"] for each in json.loads(out)["comparisons"]} == {"same"}
    for wrong in (["--suite", "x"], ["--baseline", "x"], ["--page", str(tmp_path)]):
        status, _, err = call("trends", "--lake", str(same), *wrong)
        assert (status, err.count("\n")) == (64, 1)
