import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.app.report import page, render, sheet
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
        ("invalid", "INVALID lost-write 10 · key orders-1"),
        ("unknown", "UNKNOWN 2 of 6 keys were not read to their end"),
    ],
)
def test_the_verdict_is_the_headline(
    kind: str, headline: str, run_folder: Callable[..., Path]
) -> None:
    """A reader sees at once how it went, and where to go from there."""
    folder = run_folder(kind)
    written = render(folder)
    assert written == folder / "report.html"
    parsed = Parsed(written)
    assert headline in parsed.text
    assert ("header", "class", kind) in parsed.attributes
    assert f"faultline replay {folder}" in parsed.text


def test_a_finding_names_record_fault_and_time(run_folder: Callable[..., Path]) -> None:
    """The first screen of a red page says which record, when, and under which fault."""
    text = Parsed(render(run_folder("invalid"))).text
    assert re.search(
        r"INVALID lost-write 10 · key orders-1 · offset \d+ · value \d+ "
        r"· at 2\d\.\d{3} s · during pause #2: \d+ was acknowledged",
        text,
    )


def test_the_page_needs_no_network(run_folder: Callable[..., Path]) -> None:
    """Nothing on it is loaded from elsewhere, and its own policy forbids that."""
    parsed = Parsed(render(run_folder("invalid")))
    loading = {"src", "href", "srcset", "action", "data", "poster"}
    assert [found for found in parsed.attributes if found[1] in loading] == []
    (policy,) = (
        value for _, name, value in parsed.attributes if name == "content" and "src" in value
    )
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def hostile(value: Any) -> Any:
    """The value with an attack in every string of it, keys excepted."""
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
    """Whatever a broker, a client or a plan says is shown as text."""
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

    attacked = Parsed(render(folder))
    assert attacked.tags.count("script") == plain.tags.count("script") == 2
    assert "img" not in attacked.tags
    assert [name for _, name, _ in attacked.attributes if name.startswith("on")] == []
    assert "<script>alert(1)</script>" in attacked.text
    assert "{{7*7}}" in attacked.text


def test_how_often_it_was_looked_inside(run_folder: Callable[..., Path]) -> None:
    """Where anybody has; elsewhere nothing is said of it."""
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
        "schedule": "2 faults, as in the table of faults",
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


@pytest.mark.slow
def test_the_page_of_a_large_run_stays_small(run_folder: Callable[..., Path]) -> None:
    """100,000 operations and more make a page of less than 3 MB."""
    folder = run_folder("invalid", sends=1_000_000)  # asked; the clients do not get that far
    verdict = msgspec.json.decode((folder / "verdict.json").read_bytes())
    assert verdict["evidence"]["ops"] > 100_000
    assert render(folder).stat().st_size < 3_000_000
