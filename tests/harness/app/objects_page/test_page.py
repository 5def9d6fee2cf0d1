"""The page about a judgement holds all that it needs, and shows any text as text."""

from pathlib import Path

from checkers import objects
from harness.app.objects_page import page, sections
from tests.checkers.isolation.histories import history
from tests.checkers.test_aggregates import done, events

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


def test_transactions(tmp_path: Path) -> None:
    """Each anomaly has its argument, a cycle has its drawing, and reads have their table."""
    lines = ["x= y+1", "y= x+1", "x=1 y=1", "z+1", "z+2", "z=1,2", "z=2"]
    html = rendered(tmp_path, objects.judged(history(*lines), "list-append"))
    assert "<h2>G2-item</h2>" in html
    assert '<svg class="drawing cycle"' in html
    assert "because T1 read the initial version of x" in html
    assert "rule out" in html
    assert '<table class="reads">' in html
    assert 'aria-label="2, the first difference"' in html
    valid = rendered(tmp_path, objects.judged(history("x+1", "x=1"), "list-append"))
    assert "No anomaly was found." in valid
    unknown = rendered(tmp_path, objects.judged(history("x+1"), "list-append"))
    assert "<h1>UNKNOWN</h1>" in unknown
    assert "no transaction depends on another one" in unknown


def test_many_anomalies_of_a_kind(tmp_path: Path) -> None:
    """The first ones are explained, and all are counted."""
    lines = [each for n in range(9) for each in (f"x{n}= y{n}+1", f"y{n}= x{n}+1")]
    lines += [f"x{n}=1 y{n}=1" for n in range(9)]
    judged = objects.judged(history(*lines), "list-append", consistency="serializable")
    html = rendered(tmp_path, judged)
    assert html.count('<svg class="drawing cycle"') == sections.EXPLAINED
    assert "9 were found. 5 of them are explained here." in html
