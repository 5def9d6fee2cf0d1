"""The page shows a bounded number of anomalies and keys, and says what it leaves out."""

from checkers import objects
from checkers.isolation import Found, Result
from harness.app.objects_page import sections
from tests.checkers.test_aggregates import done, events


def result(name: str, found: list[Found], count: int) -> Result:
    return Result(False, (name,), {name: found}, {name: count}, {}, (), (), (), 9)


def test_anomalies() -> None:
    """The first anomalies of a kind are explained, and all are counted."""
    many = [Found("G1a", (n,), (f"r x {n}",), f"why {n}") for n in range(9)]
    (anomaly,) = sections.anomalies(result("G1a", many, 1234))
    assert (anomaly.name, anomaly.count) == ("G1a", 1234)
    assert [one.argument for one in anomaly.explained] == [[f"why {n}"] for n in range(5)]
    assert anomaly.explained[0].transactions == ["T1 = r x 0 (event 0)"]
    assert anomaly.explained[0].drawing is None
    assert sections.anomalies(None) == []


def test_an_anomaly_without_witness() -> None:
    """An anomaly of which nothing is kept but the number is listed, and one without any is not."""
    (anomaly,) = sections.anomalies(result("G1a", [], 3))
    assert (anomaly.count, anomaly.explained) == (3, [])
    assert sections.anomalies(result("G1a", [], 0)) == []


def test_a_table_is_shown_once() -> None:
    """Several anomalies of one key have one table."""
    said = [each for n in (1, 2, 3) for each in done("txn", [["append", "x", n]])]
    for versions in ([1, 2, 3], [2, 1], [3, 1]):
        said += done("txn", [["r", "x", None]], [["r", "x", versions]])
    anomalies = sections.anomalies(objects.judged(events(*said), "list-append").result)
    one, two = next(each.explained for each in anomalies if each.name == "incompatible-order")
    assert one.table is not None
    assert (two.table, two.notes) == (
        None,
        ["The reads of x are in the table of incompatible-order 1."],
    )


def test_keys() -> None:
    """Illegal keys have sections with their names, and history without keys has one."""
    stale = [*done("write", 1), *done("write", 2), *done("read", None, 1)]
    (whole,) = sections.keys(objects.judged(events(*stale), "register"))
    assert (whole.title, whole.name, whole.label) == ("The operations", None, "Operations")
    assert whole.timeline is not None
    assert all(line[0] in "-NRW" for line in whole.why)
    keyed = [(p, t, f, ["k" * 300, v]) for p, t, f, v in stale]
    (key,) = sections.keys(objects.judged(events(*keyed), "register", keyed=True))
    assert key.title.startswith("Key kkk")
    assert len(key.title) < 110


def test_every_illegal_key_has_a_timeline() -> None:
    """A key that was not searched, because another one was illegal, is searched for the page."""
    stale = [*done("write", 1), *done("write", 2), *done("read", None, 1)]
    said = [(p, t, f, [key, v]) for key in ("x", "y", "z") for p, t, f, v in stale]
    judged = objects.judged(events(*said), "register", keyed=True)
    found = sections.keys(judged)
    assert [each.title for each in found] == ["Key x", "Key y", "Key z"]
    assert all(each.timeline is not None for each in found)
