"""The histories that are judged for their cost are correct, and the cost is reported."""

from pathlib import Path

from bench import judging
from checkers import history_file, table_builder
from model import history


def test_the_history_of_many_keys_is_complete(tmp_path: Path) -> None:
    """Each partition is written, read by a process of its own, and read to its end."""
    path = tmp_path / "history.jsonl"
    history.write(path, judging.with_readers(5))
    tables = table_builder.of_history(history_file.read(path, lambda done: None))
    assert len(tables.caught_up()) == len(tables.active_keys) == 5
    assert sorted(tables.polls.process.tolist()) == [1, 2, 3, 4, 5]


def test_a_process_tells_what_it_took(tmp_path: Path) -> None:
    """A process reports the CPU seconds and the memory that judging a valid history took."""
    assert judging.cpu_s(tmp_path, 3) > 0
    assert list(tmp_path.iterdir()) == []
