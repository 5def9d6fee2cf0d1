"""Lines of the nodes' logs, matched with the run."""

from datetime import UTC, datetime
from pathlib import Path

from harness.app.report import node_logs
from harness.app.run_start import RunStart

START = RunStart(datetime(2026, 11, 20, 16, 0, 0, tzinfo=UTC))
S = 1_000_000_000


def logs(folder: Path, **texts: str) -> node_logs.Logs:
    for node, text in texts.items():
        path = folder / "nodes" / node.replace("_", "-") / "log.txt"
        path.parent.mkdir(parents=True)
        path.write_text(text)
    return node_logs.Logs(node_logs.find(folder), START)


def test_lines_of_the_partition_come_first(tmp_path: Path) -> None:
    """If there are too many lines, those that name the partition come first.

    Then come warnings, then the lines nearest in time. Lines about other partitions and distant
    lines are left out.
    """
    noise = "".join(
        f"2026-11-20 16:00:05,{n:03} INFO a: tick of {chr(97 + n % 7)}\n" for n in range(90)
    )
    told = logs(
        tmp_path,
        broker_1=noise + "2026-11-20 16:00:06,000 WARNING b: expired\n",
        broker_2="2026-11-20 16:00:03,600 INFO c: x-1: leader 2, epoch 3\n"
        "2026-11-20 16:00:05,000 INFO c: x-11: leader 2\n"
        "2026-11-20 16:00:05,000 ERROR c: y-1: failed\n"
        "2026-11-20 16:00:30,000 INFO c: x-1: too late\n",
    ).around([5 * S, 6 * S], "x-1")
    texts = [said.text for said in told.lines]
    assert len(texts) == node_logs.LINES
    assert texts[0] == "INFO c: x-1: leader 2, epoch 3"
    assert "WARNING b: expired" in texts
    assert "ERROR c: y-1: failed" in texts
    assert not [text for text in texts if "x-11" in text or "too late" in text]
    assert [said.is_about for said in told.lines].count(True) == 1
    assert told.left + sum(said.times for said in told.lines) == 90 + 1 + 3
    assert told.lines[0].time_ns == 3_600_000_000


def test_a_topic_that_was_created_again_keeps_its_name_in_logs(tmp_path: Path) -> None:
    """Logs name a recreated topic without the number that the history adds to it."""
    told = logs(tmp_path, broker_1="2026-11-20 16:00:05,000 INFO c: x-1: gone\n")
    assert told.around([5 * S], "x~2-1").lines[0].is_about


def test_what_is_said_again_and_again_is_one_line(tmp_path: Path) -> None:
    """Repeated lines within a second are counted as one, and differences in numbers are ignored."""
    lines = [f'{{"level":"error","name":"p","error":"dial {n}","time":"2026-11-20T16:00:05Z"}}'
             for n in range(5)]  # fmt: skip
    told = logs(tmp_path, toxiproxy="\n".join(lines) + "\n").around([5 * S], None)
    assert [(said.text, said.times) for said in told.lines] == [("error: p: dial 0", 5)]
    assert told.left == 0


def test_a_traceback_follows_its_line(tmp_path: Path) -> None:
    """Lines without a time belong to the line before them."""
    text = "2026-11-20 16:00:05,000 ERROR c: failed\nTraceback:\n  File x\n\nother\n"
    told = logs(tmp_path, broker_1=text).around([5 * S], None)
    assert [said.text for said in told.lines] == ["ERROR c: failed\nTraceback:\n  File x"]


def test_a_clock_that_jumps_hides_no_line(tmp_path: Path) -> None:
    """A log need not be in the order of its times."""
    text = "".join(f"2026-11-20 16:00:{s:02},000 INFO c: at {s}\n" for s in (40, 5, 50, 6))
    told = logs(tmp_path, broker_1=text).around([5 * S, 6 * S], None)
    assert [said.text for said in told.lines] == ["INFO c: at 5", "INFO c: at 6"]


def test_logs_outside_the_folder_are_not_read(tmp_path: Path) -> None:
    """Links to files outside the folder are not followed, as the folder may come from elsewhere."""
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "log.txt").write_text("2026-11-20 16:00:05,000 INFO key\n")
    nodes = tmp_path / "run" / "nodes"
    nodes.mkdir(parents=True)
    (nodes / "broker-1").symlink_to(tmp_path / "secret")
    (nodes / "broker-2").mkdir()
    (nodes / "broker-2" / "log.txt").symlink_to(tmp_path / "secret" / "log.txt")
    (nodes / "broker-3").mkdir()
    (nodes / "broker-3" / "log.txt").write_text("")
    assert [log.node for log in node_logs.find(tmp_path / "run")] == ["broker-3"]


def test_without_a_start_nothing_is_matched(tmp_path: Path) -> None:
    """Without the time of the start (folders of earlier versions) no log line is matched."""
    logs(tmp_path, broker_1="2026-11-20 16:00:05,000 INFO c\n")
    unknown = node_logs.Logs(node_logs.find(tmp_path), None)
    assert not unknown.are_timed
    assert unknown.around([5 * S], None) == node_logs.Excerpt([], 0)


def test_a_page_of_another_folder_links_the_logs_of_the_run(tmp_path: Path) -> None:
    """The page of a further judgement links the run's logs, relative to its own folder."""
    (tmp_path / "nodes" / "broker-1").mkdir(parents=True)
    (tmp_path / "nodes" / "broker-1" / "log.txt").write_text("")
    page = tmp_path / "judgements" / "1"
    assert [log.link for log in node_logs.find(tmp_path, page)] == ["../../nodes/broker-1/log.txt"]
    assert [log.link for log in node_logs.find(tmp_path)] == ["nodes/broker-1/log.txt"]
