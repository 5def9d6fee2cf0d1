"""``python -m bench.historic``: its exit status, and the files that it writes."""

from pathlib import Path

import pytest

from bench.historic.__main__ import main
from tests.bench.historic.conftest import VALID, FakeFaultline


def test_the_page_is_written_and_the_status_is_0(fake: FakeFaultline, tmp_path: Path) -> None:
    """If everything ended as it must, the status is 0."""
    words = ["kip-101-loss", "--runs", "1", "--results", str(tmp_path), "--docs", str(tmp_path)]
    assert main(words, fake) == 0
    assert "1 of 1; 1 of 1" in (tmp_path / "historic.md").read_text()
    assert len(fake.asked) == 4


def test_a_bug_that_is_not_found_is_status_1(
    fake: FakeFaultline, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A release with the bug that is not convicted is named."""
    fake.answer = lambda words: VALID
    words = ["kip-101-loss", "--runs", "1", "--results", str(tmp_path), "--docs", str(tmp_path)]
    assert main(words, fake) == 1
    assert "apache-kafka:0.10.2.2, seed 1, did not end as it must" in capsys.readouterr().err


def test_some_parts_can_be_measured_alone(fake: FakeFaultline, tmp_path: Path) -> None:
    """With ``--parts`` only these systems are measured and judged."""
    fake.answer = lambda words: VALID
    words = ["kip-101-loss", "--runs", "1", "--results", str(tmp_path), "--docs", str(tmp_path)]
    assert main([*words, "--parts", "new,ours"], fake) == 0
    assert len(fake.asked) == 2


def test_unknown_names_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    """The refusal lists the stories, or the parts."""
    with pytest.raises(SystemExit):
        main(["kip-102"])
    assert "no story is called kip-102; there is kip-101-loss" in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(["--parts", "older"])
    assert "no part is called older; there is old, new" in capsys.readouterr().err
