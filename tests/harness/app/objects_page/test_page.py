"""The page about a judgement holds all that it needs, and shows any text as text."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from checkers import objects
from checkers.linearizability.judging import Budget
from harness.app.objects_page import page
from tests.checkers.test_aggregates import Said, done, events

STALE = [*done("write", ["<k>", 1]), *done("write", ["<k>", 2]), *done("read", None, ["<k>", 1])]


def rendered(folder: Path, judged: objects.Judged) -> str:
    return page.render(folder / "page.html", "history.edn", judged).read_text()


def test_an_illegal_key(tmp_path: Path) -> None:
    """The key has a section with sentences and a drawing; markup of the history is escaped, and
    nothing is loaded from elsewhere."""
    html = rendered(tmp_path, objects.judged(events(*STALE), "register", keyed=True))
    assert "<h1>INVALID</h1>" in html
    assert "Key &lt;k&gt;" in html
    assert "<k>" not in html
    assert html.count('<g class="bar hear') == 3
    assert "it read 1, and the register held 2" in html
    assert "http:" not in html
    assert "https:" not in html


def test_promises_of_sessions(tmp_path: Path) -> None:
    """A promise about all keys together has one section."""
    back = [*STALE[:4], *done("read", None, ["<k>", 2], 1), *done("read", None, ["<k>", 1], 1)]
    judged = objects.judged(events(*back), "register", keyed=True, consistency="zookeeper")
    html = rendered(tmp_path, judged)
    assert "<b>session-order</b> 1" in html
    assert html.count('<g class="bar hear blocked') == 1


def test_other_verdicts(tmp_path: Path) -> None:
    """A valid history, and one that was counted, have a page as well."""
    valid = rendered(tmp_path, objects.judged(events(*STALE[:4]), "register", keyed=True))
    assert "An order of all operations explains every result." in valid
    lost = objects.judged(events(*done("add", 1), *done("read", None, [2])), "set")
    assert "lost: 1 was added" in rendered(tmp_path, lost)


HOSTILE = "<script>alert('\"&')</script>\x1b]0;" + "k" * 500


def test_a_cycle_and_a_table(tmp_path: Path) -> None:
    """Cycles are drawn next to their arguments, and lists that differ are in a table. Hostile names
    are text everywhere."""
    said = [each for n in (1, 2, 3) for each in done("txn", [["append", HOSTILE, n]])]
    for versions in ([1, 2, 3], [2, 1], [1]):
        said += done("txn", [["r", HOSTILE, None]], [["r", HOSTILE, versions]])
    html = rendered(tmp_path, objects.judged(events(*said), "list-append"))
    assert html.count('<svg class="drawing cycle"') == 1
    assert html.count('<table class="reads">') == 1
    assert html.count(', the first difference"') == 1
    assert "<li>However, T2 precedes T1, because" in html
    assert html.count("<script>") == 1
    assert "alert('" not in html
    assert "\x1b" not in html


def test_the_keyboard_reaches_everything(tmp_path: Path) -> None:
    """Each transaction, step, operation and scrolled region can have the focus, and has a role and
    a text for those who do not see it."""
    one = done("txn", [["r", "x", 0], ["append", "y", 1]], [["r", "x", []], ["append", "y", 1]])
    two = done("txn", [["r", "y", 0], ["append", "x", 1]], [["r", "y", []], ["append", "x", 1]])
    read = done("txn", [["r", "x", 0], ["r", "y", 0]], [["r", "x", [1]], ["r", "y", [1]]])
    said = [one[0], (1, *two[0][1:]), one[1], (1, *two[1][1:]), *read]
    cycle = rendered(tmp_path, objects.judged(events(*said), "list-append"))
    line = rendered(tmp_path, objects.judged(events(*STALE), "register", keyed=True))
    for html, count in ((cycle, 5), (line, 3)):
        reached = re.findall(r'<\w+ [^>]*tabindex="0"[^>]*>', html)
        assert len(reached) == count
        for tag in reached:
            assert re.search(r'role="(img|region)" aria-label="[^"]+"', tag), tag
        assert re.search(r'<svg [^>]*role="group" aria-label="[^"]+"', html)
    assert 'aria-live="polite"' in line
    assert all(f"{key}:" in line for key in ("ArrowRight", "ArrowLeft", "Home", "End"))


@pytest.mark.parametrize(
    ("model", "said", "word", "text"),
    [
        ("list-append", [], "UNKNOWN", "no transaction depends on another one"),
        ("register", [], "VALID", "An order of all operations explains every result."),
        (
            "list-append",
            [*done("txn", [["append", "x", 1]]), *done("txn", [["r", "x", [1]]])],
            "VALID",
            "No anomaly was found.",
        ),
    ],
)
def test_nothing_to_draw(
    model: str, said: list[Said], word: str, text: str, tmp_path: Path
) -> None:
    """A history without anything wrong has a page with its verdict, and no drawing."""
    html = rendered(tmp_path, objects.judged(events(*said), model))
    assert f"<h1>{word}</h1>" in html
    assert text in html
    assert "<svg" not in html


def test_a_search_that_did_not_end(tmp_path: Path) -> None:
    """The page says why a verdict is unknown."""
    writes = [(n, "invoke", "write", n % 3) for n in range(6)]
    judged = objects.judged(events(*writes, (7, "ok", "read", 2)), "register", budget=Budget(1))
    html = rendered(tmp_path, judged)
    assert "<h1>UNKNOWN</h1>" in html
    assert "budget of 1 steps" in html
    assert "<svg" not in html


def test_a_contradiction_without_an_order(tmp_path: Path) -> None:
    """The page does not speak of an order that no search has found."""
    stale = [*done("write", 1), *done("write", 2), *done("read", None, 1)]
    judged = objects.judged(events(*stale), "register")
    assert judged.judgement is not None
    (part,) = judged.judgement.parts
    many = part._replace(operations=[*part.operations] * 50_000, outcome=None)
    unsearched = judged._replace(judgement=replace(judged.judgement, parts=(many,)))
    html = rendered(tmp_path, unsearched)
    assert "These contradict each other, whatever else happened." in html
    assert "149,997 other operations are not drawn" in html
    assert "Numbers mark" not in html
    assert '<g class="order' not in html
