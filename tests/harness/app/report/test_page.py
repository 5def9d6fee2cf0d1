import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from checkers import findings
from harness.app import run_start
from harness.app.report import page, raw, render, sheet
from model import history
from model.finding import Finding
from model.op import Op


class Parsed(HTMLParser):
    """The elements and the visible text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(path.read_text())
        self.text = re.sub(r"\s+", " ", " ".join(self.words))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1] not in ("script", "style"):
            self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in ("script", "style"):
            self.tags.append(f"/{tag}")


@pytest.mark.parametrize(
    ("kind", "headline"),
    [
        ("valid", "VALID No illegal anomaly"),
        ("invalid", "INVALID lost-write 10 · partition orders-1"),
        ("unknown", "UNKNOWN 2 of 6 keys were not read to their end"),
    ],
)
def test_the_verdict_is_the_headline(
    kind: str, headline: str, run_folder: Callable[..., Path]
) -> None:
    """The headline is the verdict with its reason. The page has the command to replay the run."""
    folder = run_folder(kind)
    written = render(folder)
    assert written == folder / "report.html"
    parsed = Parsed(written)
    assert headline in parsed.text
    assert ("header", "class", kind) in parsed.attributes
    assert f"faultline replay {folder}" in parsed.text


def links(parsed: Parsed, folder: Path) -> list[str]:
    """Return the broken links: those to no anchor of the page and to no file of the folder."""
    anchors = {value for _, name, value in parsed.attributes if name == "id"}
    return [
        value
        for tag, name, value in parsed.attributes
        if (tag, name) == ("a", "href")
        and not (
            value[1:] in anchors if value.startswith("#") else (folder / unquote(value)).is_file()
        )
    ]


def test_the_header_blames_the_first_findings_own_faults(run_folder: Callable[..., Path]) -> None:
    """The header names the faults of the first finding, not those of its neighbours in the row."""
    folder = run_folder("invalid")
    found = pq.read_table(folder / "findings.parquet").to_pylist()
    for row in found:
        if row["anomaly"] == "lost-write" and row["value"] != found[0]["value"]:
            row["faults"] = [2, 3, 5]
    pq.write_table(pa.Table.from_pylist(found), folder / "findings.parquet")
    text = Parsed(render(folder)).text
    assert re.search(r"at 2\d\.\d{3} s · during pause #2: \d+ was acknowledged", text)
    assert "Faults of the other 4 findings in this row: partition-one-way #3 kill #5" in text


def written_logs(folder: Path) -> Path:
    """Add a start (16:00:00) and logs of two nodes around the lost records to a folder."""
    run_start.write(folder, 1_795_190_400 * 10**9, simulated=False)
    logs = {
        "broker-1": ["2026-11-20 16:00:22,900 INFO broker: orders-1: leader 3, epoch 2",
                     "2026-11-20 16:00:59,000 INFO broker: orders-1: far away"],
        "broker-2": ["2026-11-20 16:00:23,010 INFO broker: orders-5: not this one"],
    }  # fmt: skip
    for node, lines in logs.items():
        (folder / "nodes" / node).mkdir(parents=True)
        (folder / "nodes" / node / "log.txt").write_text("\n".join(lines) + "\n")
    (folder / "nodes" / "broker-1" / "server.properties").write_text("broker.id=1\n")
    return folder


def test_evidence_is_one_click_away(run_folder: Callable[..., Path]) -> None:
    """The header links the fault, both witnesses as raw events, the logs and the plan."""
    folder = written_logs(run_folder("invalid"))
    html = render(folder).read_text()
    header = html[html.index("<header") : html.index("</header>")]
    (first, *_) = pq.read_table(folder / "findings.parquet").to_pylist()
    wanted = [
        "#fault-2",
        *(f"#event-{op}" for op in first["ops"]),
        "#timeline-1",
        "#plan",
        "#again",
    ]
    wanted += ["nodes/broker-1/log.txt", "nodes/broker-2/log.txt"]
    assert [link for link in wanted if f'href="{link}"' not in header] == []
    parsed = Parsed(folder / "report.html")
    assert links(parsed, folder) == []
    assert ("a", "href", "plan.json") in parsed.attributes
    assert ("a", "href", "nodes/broker-1/server.properties") in parsed.attributes
    for op in first["ops"]:
        assert f'"index":{op},' in parsed.text


def test_the_page_of_a_long_run_has_all_files_of_its_history(
    run_folder: Callable[..., Path],
) -> None:
    """A history of several files has the same figures and witnesses as in one, and the links."""
    folder = run_folder("invalid")
    path = folder / "history.jsonl"
    events = list(history.read(path))
    (first, *_) = pq.read_table(folder / "findings.parquet").to_pylist()
    short = Parsed(render(folder))
    cuts = [0, first["ops"][0] + 1, first["ops"][-1], len(events)]
    for number in range(3):
        history.write(history.segment(path, number), events[cuts[number] : cuts[number + 1]])
    long = Parsed(render(folder))
    assert links(long, folder) == []
    later = [f"history-00000{number}.jsonl" for number in (1, 2)]
    for name in later:
        assert ("a", "href", name) in long.attributes
        assert name not in short.text
    assert f"event {first['ops'][-1]} · history-000002.jsonl , line 1 ·" in long.text
    assert f"event {first['ops'][-1]} · line {first['ops'][-1] + 1:,} ·" in short.text
    for op in first["ops"]:
        assert f'"index":{op},' in long.text
    beside = "Raw events"
    assert long.text[: long.text.index(beside)] == short.text[: short.text.index(beside)]


def test_times_of_day_stand_beside_run_time(run_folder: Callable[..., Path]) -> None:
    """With a known start, witnesses and faults have a time of day, and logs are matched."""
    text = Parsed(render(written_logs(run_folder("invalid")))).text
    assert "started 2026-11-20 16:00:00.000 UTC" in text
    assert re.search(r"event \d+ at 23\.000 s 16:00:23\.000 , ok send of process 51", text)
    assert "21.00 s 16:00:21.000" in text
    assert "INFO broker: orders-1: leader 3, epoch 2" in text
    assert "not this one" not in text
    assert "far away" not in text


def test_a_folder_without_a_start_has_run_time_alone(run_folder: Callable[..., Path]) -> None:
    """Without a start (folders of earlier versions) logs are linked, and no time is guessed."""
    folder = written_logs(run_folder("invalid"))
    (folder / "run.json").unlink()
    parsed = Parsed(render(folder))
    assert "UTC" not in parsed.text
    assert "does not say at which time of day the run started" in parsed.text
    assert ("a", "href", "nodes/broker-1/log.txt") in parsed.attributes
    assert links(parsed, folder) == []


def test_warnings_of_the_nodes_are_on_the_time_axis(run_folder: Callable[..., Path]) -> None:
    """The page marks warnings in a plot and counts each kind in a table, if there are any."""
    folder = written_logs(run_folder("invalid"))
    quiet = Parsed(render(folder))
    assert "at WARN and above" not in quiet.text
    assert "lines in the nodes' logs" not in quiet.text
    with (folder / "nodes" / "broker-2" / "log.txt").open("a") as log:
        for second in range(24, 30):
            log.write(
                f"[2026-11-20 16:00:{second},500] WARN Session 0x{second}, reconnecting (z)\n"
            )
        log.write("java.lang.OutOfMemoryError: a line without a time\n")
        log.write("[2026-11-20 16:00:31,000] ERROR Processor got uncaught exception (k)\n")
    html = render(folder).read_text()
    loud = Parsed(folder / "report.html")
    assert "WARN, ERROR and FATAL lines in the nodes' logs" in loud.text
    table = loud.text[loud.text.index("What the nodes logged at WARN and above") :]
    assert "broker-2 ERROR 1 31.00 s 16:00:31.000 31.00 s 16:00:31.000 ERROR Processor" in table
    assert "broker-2 WARN 6 24.50 s 16:00:24.500 29.50 s 16:00:29.500 WARN Session 0x24" in table
    assert "FATAL" not in table
    script = html[html.rindex("<script") :]
    assert script.count("reconnecting") == 6
    assert script.count("Processor got uncaught exception") == 1
    assert links(loud, folder) == []


def test_a_flood_of_warnings_keeps_the_page_small(run_folder: Callable[..., Path]) -> None:
    """A node with thousands of warnings adds a bounded number of bytes to the page."""
    folder = written_logs(run_folder("invalid"))
    before = render(folder).stat().st_size
    with (folder / "nodes" / "broker-2" / "log.txt").open("a") as log:
        for n in range(5000):
            log.write(f"[2026-11-20 16:00:{n % 50:02},500] WARN {'x' * 500} {n} (kafka.A)\n")
    assert render(folder).stat().st_size < before + 200_000


def test_a_witness_says_which_fault_was_last(run_folder: Callable[..., Path]) -> None:
    """Each witness names the fault active then, or how long ago the last one was healed."""
    folder = run_folder("invalid")
    text = Parsed(render(folder)).text
    assert re.search(
        r"event \d+ at 23\.000 s, ok send of process 51 · pause #2 had been in effect", text
    )
    rows = (folder / "schedule.jsonl").read_text().splitlines()
    early = rows[1].replace("18200000000", "22100000000")
    (folder / "schedule.jsonl").write_text(early + "\n")
    text = Parsed(render(folder)).text
    assert "kill #1 was healed 900 ms before" in text


def test_a_checker_that_had_nothing_to_judge_is_grey(run_folder: Callable[..., Path]) -> None:
    """A checker without anything to judge is not shown as valid.

    A verdict of an earlier version does not say how much was judged.
    """
    folder = run_folder("valid")
    verdict = msgspec.json.decode((folder / "verdict.json").read_bytes())
    verdict["checkers"] = {
        "torn": {"valid": True, "seconds": 0.0, "judged": 0},
        "loss": {"valid": True, "seconds": 0.1, "judged": 12345},
        "order": {"valid": True, "seconds": 0.1},
        "cycles": {"valid": "unknown", "seconds": 0.1, "judged": 0},
    }
    (folder / "verdict.json").write_bytes(msgspec.json.encode(verdict))
    text = Parsed(render(folder)).text
    assert "torn nothing to judge 0 transactions" in text
    assert "loss valid 12,345 acknowledged records" in text
    assert "order valid 0.1" in text
    assert "cycles unknown 0 transactions" in text


def test_raw_events_are_bounded(run_folder: Callable[..., Path]) -> None:
    """The quoted events are bounded, and the page says where the rest is."""
    folder = run_folder("invalid")
    events = list(history.read(folder / "history.jsonl"))
    huge = [["poll", {"orders-1": [[at, at] for at in range(9000, 14_000)]}]]
    events = [
        msgspec.structs.replace(op, value=huge) if op.f == "poll" and op.type == "ok" else op
        for op in events
    ]
    (folder / "history.jsonl").unlink()
    history.write(folder / "history.jsonl", events[:600])
    found = [
        Finding(anomaly=f"kind-{number % 40}", key="orders-1", offset=9_000 + 2 * number,
                ops=tuple(range(number % 500, number % 500 + 8)), why="x")
        for number in range(4000)
    ]  # fmt: skip
    pq.write_table(pa.Table.from_pylist(msgspec.to_builtins(found)), folder / "findings.parquet")
    written = render(folder)
    parsed = Parsed(written)
    quoted = [name for _, _, name in parsed.attributes if name.startswith("event-")]
    assert 0 < len(quoted) <= raw.EVENTS
    assert "more characters: sed -n" in parsed.text
    assert "2 more witnesses" in parsed.text
    assert links(parsed, folder) == []
    assert written.stat().st_size < 3_000_000


def test_a_finding_names_record_fault_and_time(run_folder: Callable[..., Path]) -> None:
    """The headline of a red page names the record, the time and the fault."""
    text = Parsed(render(run_folder("invalid"))).text
    assert re.search(
        r"INVALID lost-write 10 · partition orders-1 · offset \d+ · value \d+ "
        r"· at 2\d\.\d{3} s · during pause #2: \d+ was acknowledged",
        text,
    )


def test_the_page_needs_no_network(run_folder: Callable[..., Path]) -> None:
    """The page loads nothing from elsewhere, and its own policy forbids that."""
    parsed = Parsed(render(run_folder("invalid")))
    loading = {"src", "srcset", "action", "data", "poster"}
    assert [found for found in parsed.attributes if found[1] in loading] == []
    assert {tag for tag, name, _ in parsed.attributes if name == "href"} <= {"a"}
    (policy,) = (
        value for _, name, value in parsed.attributes if name == "content" and "src" in value
    )
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def hostile(value: Any) -> Any:
    """Return the value with an attack in each of its strings, keys excepted."""
    match value:
        case str(text):
            return (
                text + "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"`{{7*7}}"
            )
        case dict(parts):
            return {name: hostile(part) for name, part in parts.items()}
        case list(parts):
            return [hostile(part) for part in parts]
        case _:
            return value


def test_nothing_from_a_run_becomes_markup(tmp_path: Path, run_folder: Callable[..., Path]) -> None:
    """All text from a broker, a client or a plan is escaped."""
    plain = Parsed(render(run_folder("invalid")))
    folder = tmp_path / "<script>alert(0)<script>"
    folder.mkdir()
    source = plain_folder = next(tmp_path.glob("*-invalid"))
    for name in ("plan.json", "verdict.json"):
        value = msgspec.json.decode((source / name).read_bytes())
        (folder / name).write_bytes(msgspec.json.encode(hostile(value)))
    rows = [
        msgspec.json.encode(hostile(msgspec.json.decode(row)))
        for row in (source / "schedule.jsonl").read_bytes().splitlines()
    ]
    (folder / "schedule.jsonl").write_bytes(b"\n".join(rows) + b"\n")
    events = [
        msgspec.structs.replace(op, f=hostile(op.f), value=hostile(op.value), error=hostile("E"))
        for op in history.read(plain_folder / "history.jsonl")
    ]
    history.write(folder / "history.jsonl", events)
    found = pq.read_table(plain_folder / "findings.parquet").to_pylist()
    pq.write_table(pa.Table.from_pylist(hostile(found)), folder / "findings.parquet")

    node = folder / "nodes" / '"><img src=x onerror=alert(3)>'
    node.mkdir(parents=True)
    line = hostile("2026-11-20 16:00:23,000 ERROR broker: orders-1 \x1b]0;title\x07 \u202e\n")
    (node / "log.txt").write_text(line)
    run_start.write(folder, 1_795_190_400 * 10**9, simulated=False)

    attacked = Parsed(render(folder))
    assert attacked.tags.count("script") == plain.tags.count("script") == 2
    assert "img" not in attacked.tags
    assert [name for _, name, _ in attacked.attributes if name.startswith("on")] == []
    assert "<script>alert(1)</script>" in attacked.text
    assert "{{7*7}}" in attacked.text
    assert "ERROR broker: orders-1 \\x1b]0;title\\x07 \\u202e" in attacked.text
    assert links(attacked, folder) == []


def test_how_often_it_was_looked_inside(run_folder: Callable[..., Path]) -> None:
    """The page says how many snapshots were judged, if there were any."""
    folder = run_folder("valid")
    assert "snapshots" not in Parsed(render(folder)).text
    verdict = msgspec.json.decode((folder / "verdict.json").read_bytes())
    verdict["evidence"]["snapshots"] = 1234
    (folder / "verdict.json").write_bytes(msgspec.json.encode(verdict))
    assert "1,234 snapshots judged" in Parsed(render(folder)).text


def test_secrets_are_masked(run_folder: Callable[..., Path]) -> None:
    """A password in a plan does not reach the page."""
    html = render(run_folder("valid")).read_text()
    assert "ssl.key.password" in html
    assert "hunter2" not in html


def test_settings_are_written_out() -> None:
    """Every setting is listed by its dotted name."""
    plan = {
        "seed": 7, "mutants": [], "nemesis": ["a", "b"], "brokers": [1],
        "broker": {"min.insync.replicas": "2"}, "consumer": {},
        "producer": {"sasl.jaas.config": "x", "Ssl.Truststore.PASSWORD": "y"},
        "schedule": [{"id": 0}, {"id": 1}],
    }  # fmt: skip
    assert dict(page.settings(plan)) == {
        "seed": "7",
        "mutants": "none",
        "nemesis": "a, b",
        "brokers": "[1]",
        "broker.min.insync.replicas": "2",
        "consumer": "{}",
        "producer.sasl.jaas.config": sheet.MASK,
        "producer.Ssl.Truststore.PASSWORD": sheet.MASK,
        "schedule": "2 faults; see the table of faults",
    }


def test_what_a_broken_run_left_is_shown(tmp_path: Path) -> None:
    """A folder without a verdict, a plan or any fault still has a page, and it says unknown."""
    history.write(
        tmp_path / "history.jsonl",
        [Op(index=0, time_ns=5, process=0, type="invoke", f="send", value=[["send", "a-0", 1]])],
    )
    text = Parsed(render(tmp_path)).text
    assert "UNKNOWN this folder has not been judged" in text
    (tmp_path / "history.jsonl").unlink()
    assert "UNKNOWN" in Parsed(render(tmp_path)).text


def test_a_finding_without_a_place_is_shown(tmp_path: Path) -> None:
    """A finding may have no key, no offset and no witness in the history."""
    finding = Finding(anomaly="unavailable", why="no record was taken for 30 s", ops=(4711,))
    pq.write_table(
        pa.Table.from_pylist(msgspec.to_builtins([finding])), tmp_path / "findings.parquet"
    )
    (tmp_path / "verdict.json").write_bytes(b'{"valid": false, "anomalies": {"unavailable": 1}}')
    text = Parsed(render(tmp_path)).text
    assert "INVALID unavailable 1" in text
    assert "no record was taken for 30 s" in text


def test_a_finding_of_a_generation_names_it(tmp_path: Path) -> None:
    """The page calls a generation by its name, and not an offset."""
    finding = Finding(anomaly="double-owner", key="x-0", group="g", generation=3, ops=(1, 2))
    findings.write(tmp_path / "findings.parquet", [finding])
    (tmp_path / "verdict.json").write_bytes(b'{"valid": false, "anomalies": {"double-owner": 1}}')
    text = Parsed(render(tmp_path)).text
    assert "partition x-0 · generation 3" in text
    assert "offset" not in text[text.index("INVALID") :][:200]


def test_findings_of_earlier_versions_are_shown(tmp_path: Path) -> None:
    """A ``findings.parquet`` without the column ``generation`` is still readable."""
    finding = Finding(anomaly="double-owner", key="x-0", group="g", offset=3, ops=(1, 2))
    findings.write(tmp_path / "findings.parquet", [finding])
    old = pq.read_table(tmp_path / "findings.parquet").drop_columns(["generation"])
    pq.write_table(old, tmp_path / "findings.parquet")
    (tmp_path / "verdict.json").write_bytes(b'{"valid": false, "anomalies": {"double-owner": 1}}')
    assert "partition x-0 · offset 3" in Parsed(render(tmp_path)).text


@pytest.mark.slow
def test_the_page_of_a_large_run_stays_small(run_folder: Callable[..., Path]) -> None:
    """The page of a run with more than 100,000 operations is smaller than 3 MB."""
    folder = run_folder("invalid", sends=1_000_000)  # a target that the clients do not reach
    verdict = msgspec.json.decode((folder / "verdict.json").read_bytes())
    assert verdict["evidence"]["ops"] > 100_000
    assert render(folder).stat().st_size < 3_000_000
