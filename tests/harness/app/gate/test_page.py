import random
import re
from collections.abc import Callable, Sequence
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from harness.app.gate import outcome, page, trends
from harness.app.gate.outcome import Case, FaultProof, Gate
from model.finding import Finding

WHY = (
    "value 1431 was acknowledged to process 4 at offset 1431 at 3.021 s; "
    "but offset 1431 holds value 1813, read by process 5 at 7.706 s"
)
LOST = Finding(
    anomaly="lost-write", key="topic0-0", partition=0, offset=1431, value=1431, faults=(1,), why=WHY
)
HOSTILE = "</script><script>alert(1)</script><img src=x onerror='alert(2)'>\"`{{7*7}} ünïcödé 日本"


class Parsed(HTMLParser):
    """The elements and the visible text of a page."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.words: list[str] = []
        self.feed(path.read_text(encoding="utf-8"))
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

    def values(self, name: str) -> list[str]:
        return [value for _, attribute, value in self.attributes if attribute == name]


def run_of(gate: Path, name: str, found: Sequence[Finding] = ()) -> str:
    """Write the kept folder of a run, with the files that a gate's page reads."""
    run = gate / "runs" / name
    run.mkdir(parents=True)
    (run / "report.html").write_text("<!doctype html>")
    (run / "plan.json").write_text("{}")
    fault = {
        "id": 1, "fault": "kill", "targets": ["broker-1"], "asked_ns": 3_900_000_000,
        "applied_ns": 4_000_000_000, "healed_ns": 7_000_000_000,
        "effect": {"proved": True, "how": "pid 4711 is gone"},
    }  # fmt: skip
    (run / "schedule.jsonl").write_bytes(msgspec.json.encode(fault) + b"\n")
    if found:
        pq.write_table(pa.Table.from_pylist(msgspec.to_builtins(found)), run / "findings.parquet")
    return f"runs/{name}"


def case(seed: int = 0, **more: Any) -> Case:
    """Make a valid case; the given fields replace its own."""
    chance = random.Random(f"{seed} {more.get('target')}")
    given: dict[str, Any] = {
        "workload": "idempotent", "nemesis": ("kill", "partition"), "configuration": "acks-all",
        "target": "processes", "seed": seed, "status": "valid", "seconds": 31.5,
        "evidence": {"acked": chance.randint(15_000, 25_000)},
        "throughput_hz": chance.uniform(700, 900), "unavailable_s": chance.uniform(2.5, 6),
        "recovery_s": chance.uniform(0.4, 2.5),
        "faults": (FaultProof("kill", True), FaultProof("partition-one", True)),
    } | more  # fmt: skip
    named = " · ".join(
        [given["workload"], ",".join(given["nemesis"]), given["configuration"], given["target"]]
    )
    return Case(**{"name": f"{named} · seed {seed}"} | given)


def lost(folder: str | None, **more: Any) -> Case:
    """Make a case in which acknowledged records were lost."""
    return case(
        1, status="invalid", configuration="acks-1", folder=folder, anomalies={"lost-write": 2107},
        why=(f"lost-write 2,107 · partition topic0-0, offset 1431, fault 1: {WHY}",), **more,
    )  # fmt: skip


def gate(cases: Sequence[Case], **more: Any) -> Gate:
    """Make a finished gate, with the verdict that follows from its cases."""
    given: dict[str, Any] = {
        "suite": "nightly", "name": "20261120T161500Z-nightly", "began": "2026-11-20T16:15:00Z",
        "seconds": 415.2, "commit": "0f1e" * 10, "versions": {"python": "3.11.7"},
        "planned": len(cases), "cases": tuple(cases),
        "valid": outcome.overall(cases, finished=more.get("planned", len(cases)) == len(cases)),
    }  # fmt: skip
    return Gate(**given | more)


def earlier(count: int) -> list[Gate]:
    """Make the gates of earlier days; the third of them is red."""
    return [
        gate(
            [*(case(10 * day + seed) for seed in range(11)), lost(None) if day == 2 else case(99)],
            began=f"2026-11-{10 + day:02}T02:00:00Z",
            commit=f"{day}a{day}b" * 10,
        )
        for day in range(count)
    ]


Rendered = Callable[..., Parsed]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "gates" / "20261120T161500Z-nightly"
    made.mkdir(parents=True)
    return made


@pytest.fixture
def rendered(folder: Path) -> Rendered:
    """Render and parse the page of a gate: ``rendered(gate([...]), earlier(3))``."""

    def render(value: Gate, before: Sequence[Gate] = ()) -> Parsed:
        outcome.write(folder, value)
        written = page.render(folder, before)
        assert written == folder / "index.html"
        return Parsed(written)

    return render


@pytest.mark.parametrize(
    ("more", "word", "look", "reason"),
    [
        ({}, "VALID", "valid", "No illegal anomaly in any case"),
        ({"status": "invalid", "anomalies": {"duplicate": 3}, "why": ("twice",)}, "INVALID",
         "invalid", "duplicate 3 : twice in idempotent"),
        ({"status": "unknown"}, "UNKNOWN", "unknown", "1 case had too little evidence"),
        ({"status": "failed"}, "UNKNOWN", "unknown", "Faultline itself failed in 1 case"),
        ({"status": "skipped"}, "UNKNOWN", "unknown", "1 case did not run"),
        ({"status": "skipped", "excused": True}, "VALID", "valid",
         "1 case did not run, as the suite or the command line permits."),
    ],
)  # fmt: skip
def test_the_word_is_the_headline(
    more: dict[str, Any], word: str, look: str, reason: str, rendered: Rendered
) -> None:
    """The headline is the verdict, then a sentence with the reason, then what was tested."""
    parsed = rendered(gate([case(), case(1, **more)]))
    text = re.sub(r" ([:,])", r"\1", parsed.text)
    assert re.search(rf" {word} .*{re.escape(reason.replace(' :', ':'))}.*Suite nightly", text)
    assert ("header", "class", look) in parsed.attributes
    assert "commit 0f1e0f1e0" in text
    assert "2026-11-20 16:15:00 UTC" in text
    assert "0:06:55" in text


def test_a_lost_record_is_told_in_full(folder: Path, rendered: Rendered) -> None:
    """A lost record's place, reason, fault and replay command precede the table of cases."""
    run = run_of(folder, "20261120T161501Z-idempotent-seed1", [LOST])
    parsed = rendered(gate([case(0), lost(run)]))
    before, after = parsed.text.split("All cases")
    assert (
        "lost-write 2,107 · partition topic0-0 · offset 1431 · value 1431 · during kill #1"
        in before
    )
    assert before.count(WHY) == 2, "in the headline and in its case, and not once more"
    assert "broker-1 from 4.00 s to 7.00 s: pid 4711 is gone" in before
    assert f"faultline replay {folder / run}" in before
    assert f"{run}/report.html" in parsed.values("href")
    assert after.index("invalid") < after.index("valid ", after.index("invalid") + 8)


def test_red_cases_come_first(rendered: Rendered) -> None:
    """Cases that need attention come before all others, in order of severity."""
    states = ("valid", "skipped", "unknown", "invalid", "valid", "failed")
    text = rendered(gate([case(place, status=state) for place, state in enumerate(states)])).text
    rows = re.findall(r"[✓✗?!/] (valid|invalid|unknown|failed|skipped) idempotent", text)
    assert rows[-6:] == ["invalid", "failed", "unknown", "skipped", "valid", "valid"]
    assert rows[:3] == ["invalid", "failed", "unknown"], "and these are told in full"


def test_links_lead_somewhere(folder: Path, rendered: Rendered) -> None:
    """Every link's target exists; runs that were removed or are outside the folder have no link."""
    outside = folder.parent / "elsewhere"
    outside.mkdir()
    (outside / "report.html").touch()
    (folder / "runs" / "bare").mkdir(parents=True)
    odd = run_of(folder, "20261120T161502Z-a#b%20 ?'<i>-seed2")
    kept = ["runs/gone", "../elsewhere", "runs/bare", str(outside), None, odd]
    parsed = rendered(gate([lost(kept[0]), *(case(n, folder=f) for n, f in enumerate(kept))]))
    links = parsed.values("href")
    assert len([link for link in links if not link.startswith("#")]) == 1
    for link in links:
        if link.startswith("#"):
            assert link[1:] in parsed.values("id")
        else:
            assert (folder / unquote(link)).is_file()


def test_the_page_needs_no_network(rendered: Rendered) -> None:
    """The page loads nothing from elsewhere, and its own policy forbids that."""
    parsed = rendered(gate([case()]), earlier(3))
    assert {name for _, name, _ in parsed.attributes} & {"src", "srcset", "action", "data"} == set()
    (policy,) = (value for value in parsed.values("content") if "default-src" in value)
    assert policy.startswith("default-src 'none'")


def test_nothing_from_a_run_becomes_markup(folder: Path, rendered: Rendered) -> None:
    """All text from a suite, a broker or a client is escaped."""
    plain = rendered(gate([lost(run_of(folder, "a", [LOST])), case()]), earlier(2))
    evil = msgspec.structs.replace(
        LOST, anomaly=HOSTILE, key=HOSTILE, why=HOSTILE, faults=(1,), value=None
    )
    hostile = case(
        1, name=HOSTILE, workload=HOSTILE, nemesis=(HOSTILE,), configuration=HOSTILE,
        target=HOSTILE, system=HOSTILE, mutants=(HOSTILE,), status="invalid", why=(HOSTILE,),
        anomalies={HOSTILE: 1}, folder=run_of(folder, "b", [evil]),
        faults=(FaultProof(HOSTILE, False),),
    )  # fmt: skip
    broken = msgspec.structs.replace(hostile, folder=None, status="skipped")
    other = msgspec.structs.replace(hostile, folder=None, system="kafka")
    before = [gate([hostile], commit=HOSTILE, suite=HOSTILE, began=HOSTILE)]
    attacked = rendered(
        gate([hostile, broken, other], suite=HOSTILE, commit=HOSTILE, versions={HOSTILE: HOSTILE},
             mutants=(HOSTILE,), began=HOSTILE), before,
    )  # fmt: skip
    assert attacked.tags.count("script") == plain.tags.count("script") == 2
    assert "img" not in attacked.tags
    assert [name for _, name, _ in attacked.attributes if name.startswith("on")] == []
    assert HOSTILE in attacked.text


def test_secrets_are_masked(rendered: Rendered) -> None:
    """A password in a configuration reaches neither the text nor the data of the plots."""
    told = case(0, configuration="acks=1, ssl.key.password=hunter2")
    parsed = rendered(gate([told]), [gate([told])])
    assert "ssl.key.password=*" in parsed.text
    assert not any("hunter2" in value for _, _, value in parsed.attributes)
    assert "hunter2" not in parsed.text


def test_secrets_are_masked_in_plots(folder: Path, rendered: Rendered) -> None:
    """The data behind the plots holds no password either."""
    told = case(0, configuration="ssl.key.password=hunter2")
    rendered(gate([told]), [gate([told])])
    assert "hunter2" not in (folder / "index.html").read_text()


APACHE = "apache-kafka:3.9.1"


def test_systems_side_by_side(rendered: Rendered) -> None:
    """Cases that differ in the system only are compared, with medians and ratios."""
    ours = case(1, name="a · seed 1", throughput_hz=800.0, unavailable_s=2.0, recovery_s=1.0)
    theirs = case(
        1, name=f"a · {APACHE} · seed 1", system=APACHE, throughput_hz=200.0, unavailable_s=4.0,
        recovery_s=None, status="unknown",
    )  # fmt: skip
    parsed = rendered(gate([ours, case(2), theirs]))
    section = parsed.text.split("Systems side by side")[1].split("All cases")[0]
    assert "a · seed 1 ✓ valid ? unknown 800 /s 200 /s 2.0 s 4.0 s 1.0 s — 2/2 2/2" in section
    assert "Median 1 of 1 valid 0 of 1 valid 800 /s 200 /s 2.0 s 4.0 s — —" in section
    assert "Ratio to kafka 1 case 0.25 1 case 2.00 0 cases —" in section
    widths = [value.split(";")[0] for value in parsed.values("style") if "width" in value]
    assert widths == ["width: 100.0%", "width: 25.0%", "width: 50.0%", "width: 100.0%",
                      "width: 100.0%"]  # fmt: skip
    assert f"systems kafka, {APACHE}" in parsed.text


def test_one_system_has_no_comparison(rendered: Rendered) -> None:
    """The page of a gate that tests one system has neither the section nor its words."""
    text = rendered(gate([case(), case(1)])).text
    assert "side by side" not in text
    assert "systems kafka" not in text


def test_trends_are_those_of_one_system(rendered: Rendered) -> None:
    """Trends count the cases of the first system only, in this gate and in earlier ones."""
    theirs = case(
        1, system=APACHE, name=f"a · {APACHE} · seed 1", throughput_hz=9.0,
        anomalies={"torn-transaction": 1},
    )  # fmt: skip
    before = [gate([theirs]), gate([case(3, throughput_hz=100.0), theirs])]
    text = rendered(gate([case(1, throughput_hz=300.0), theirs]), before).text
    assert "This gate: 300 /s; median of earlier gates: 100 /s (+200%)." in text
    assert "Only cases of kafka are counted." in text
    text = rendered(gate([theirs]), before).text
    assert "This gate: 9.0 /s; median of earlier gates: 9.0 /s" in text
    assert f"Only cases of {APACHE} are counted." in text


def test_the_first_gate_has_no_trends(rendered: Rendered) -> None:
    """Without earlier gates the page says so, and has neither plots nor the library for them."""
    parsed = rendered(gate([case()]))
    assert "This is the first gate of the suite nightly among these results" in parsed.text
    assert "Bokeh" not in parsed.text
    assert parsed.tags.count("section") == 0


def test_trends_compare_with_earlier_gates(rendered: Rendered) -> None:
    """Each plot of a trend has a title with a unit, and a sentence with the change."""
    text = rendered(gate([case(n) for n in range(12)]), earlier(6)).text
    assert re.search(
        r"Anomalies: cases that show one, by kind This gate has 0; 1 of 6 earlier gates", text
    )
    for title in ("longest wait for an acknowledgement, s", "slowest recovery after a heal, s"):
        assert re.search(
            rf"{title} This gate: \d\.\d s; median of earlier gates: \d\.\d s \([+-]\d+%\)\.", text
        )
    assert re.search(
        r"acknowledged per second This gate: \d+ /s; median of earlier gates: \d+ /s \(", text
    )
    assert "lost-write in 1" in text


def test_nothing_measured_is_said(rendered: Rendered) -> None:
    """A figure that no case has is a sentence instead of a plot."""
    bare = case(0, throughput_hz=None, unavailable_s=None, recovery_s=None)
    text = rendered(gate([bare]), [gate([bare])]).text
    assert text.count("No case has a value.") == 3
    assert "No case of these 2 gates shows one." in text


@pytest.mark.parametrize(
    ("now", "before", "said"),
    [
        (None, [2.0, 4.0], "This gate has no value; median of earlier gates: 3.0 /s."),
        (5.0, [None], "This gate: 5.0 /s; no earlier gate has a value."),
        (5.0, [4.0, None], "This gate: 5.0 /s; median of earlier gates: 4.0 /s (+25%)."),
        (0.5, [0.04], "This gate: 0.50 /s; median of earlier gates: 0.040 /s."),
        (1500.0, [0.0], "This gate: 1,500 /s; median of earlier gates: 0.0 /s."),
        (None, [None], "This gate has no value."),
    ],
)
def test_the_change_in_a_sentence(now: float | None, before: list[float | None], said: str) -> None:
    """The latest value is compared with the median of the earlier ones, if there are any."""
    assert trends.compared(trends.TRENDS[2], [*before, now]) == said


def test_a_gate_that_is_not_at_its_end(rendered: Rendered) -> None:
    """The page of an unfinished gate says how many cases have ended, and that it is unknown."""
    text = rendered(gate([case()], planned=12), earlier(1)).text
    assert "UNKNOWN The gate has not finished: 1 of 12 cases have ended." in text
    text = rendered(gate([case()], planned=12, interrupted=True)).text
    assert "UNKNOWN The gate was interrupted: 1 of 12 cases have ended." in text


def test_an_unknown_gate_names_its_first_reason(rendered: Rendered) -> None:
    """Without an anomaly the headline is the first reason for doubt, with a link to its case."""
    doubtful = case(3, status="unknown", why=("nothing was acknowledged", "and no fault bit"))
    parsed = rendered(gate([case(), doubtful]))
    assert f"UNKNOWN nothing was acknowledged in {doubtful.name}" in parsed.text
    assert "#case-0" in parsed.values("href")


def test_a_gate_without_cases(rendered: Rendered) -> None:
    """A gate without cases is unknown."""
    text = rendered(gate([]), earlier(2)).text
    assert "UNKNOWN No case has run." in text


def test_a_folder_without_a_gate(folder: Path) -> None:
    """A folder without ``gate.json`` has no page."""
    with pytest.raises(page.NoGate, match=r"gate\.json"):
        page.render(folder, [])


def test_a_broken_run_still_has_its_sentence(folder: Path, rendered: Rendered) -> None:
    """If a run's files cannot be read, its case shows the reason from ``gate.json``."""
    run = run_of(folder, "a")
    (folder / run / "findings.parquet").write_bytes(b"PAR1 not really")
    assert WHY in rendered(gate([lost(run)])).text


def test_a_results_folder_may_lie_anywhere(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Links are relative to the page, whatever path was given for its folder."""
    run = run_of(folder, "a")
    outcome.write(folder, gate([lost(run)]))
    (folder.parent.parent / "here").mkdir()
    monkeypatch.chdir(folder.parent.parent / "here")
    parsed = Parsed(page.render(Path("..", "gates", folder.name), []))
    assert f"{run}/report.html" in parsed.values("href")


def test_what_is_left_of_a_failed_case_is_named(folder: Path, rendered: Rendered) -> None:
    """A failed case without a report names the folder that is left of its run."""
    (folder / "runs" / "left").mkdir(parents=True)
    there = rendered(gate([case(status="failed", folder="runs/left")])).text
    assert "This case has no report; its files are in runs/left" in there
    gone = rendered(gate([case(status="failed", folder="runs/gone")])).text
    assert "This case has no report." in gone
    assert "runs/gone" not in gone


def test_many_red_cases_stay_readable(folder: Path, rendered: Rendered) -> None:
    """Of 200 red cases the first are shown in full and the others folded. The page stays small."""
    parsed = rendered(gate([case(n, status="failed", why=("it fell",)) for n in range(200)]))
    assert parsed.tags.count("details") == 200
    assert len(parsed.values("open")) == page.OPENED
    assert (folder / "index.html").stat().st_size < 400_000
