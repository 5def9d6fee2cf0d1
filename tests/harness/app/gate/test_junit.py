"""A gate as JUnit XML, as CI systems read it."""

import xml.etree.ElementTree as ElementTree
from collections.abc import Callable
from pathlib import Path
from typing import Any

from junitparser import JUnitXml

from harness.app.gate import junit
from harness.app.gate.outcome import FaultProof, Gate

Make = Callable[..., Any]

LOST = (
    "lost-write 3 · partition topic0-0, offset 118, fault 2: value 9 was acknowledged to process 2",
    "duplicate 1 · partition topic0-1, offset 7: value 5 is there twice",
)


def parsed(gate: Gate) -> ElementTree.Element:
    return ElementTree.fromstring(junit.encode(gate, Path("results/gates/x")))


def test_a_suite_with_a_case_of_every_kind(case: Make, gate: Make) -> None:
    """A broker's fault is a failure, the test's is an error, and each message says why."""
    root = parsed(
        gate(
            case("valid", seconds=26.5, throughput_hz=812.4, faults=(FaultProof("kill", True),)),
            case("invalid", anomalies={"lost-write": 3, "duplicate": 1}, why=LOST, folder="runs/a",
                 mutants=("ack-on-local-append",)),
            case("unknown", why=("nothing was acknowledged",), folder="runs/b"),
            case("failed", why=("OSError: no room",)),
            case("skipped", why=("the rest of the budget of 10 min is too short",)),
            case("skipped", why=("containers is optional",), excused=True),
            commit="0123abc", versions={"python": "3.11.7"}, seed=7,
        )
    )  # fmt: skip
    suite = root[0]
    counts = {name: suite.attrib[name] for name in ("tests", "failures", "errors", "skipped")}
    assert counts == {"tests": "6", "failures": "1", "errors": "3", "skipped": "1"}
    assert suite.attrib["name"] == "quick"
    properties = {each.attrib["name"]: each.attrib["value"] for each in suite.iter("property")}
    assert properties == {"commit": "0123abc", "seed": "7", "python": "3.11.7"}
    valid, invalid, unknown, failed, skipped, excused = suite.findall("testcase")
    assert valid.attrib == {
        "name": "idempotent · kill · valid",
        "classname": "faultline.quick",
        "time": "26.5",
    }
    assert valid.find("failure") is valid.find("error") is None
    assert "faults proved 1 of 1" in str(valid.findtext("system-out"))
    failure = invalid.find("failure")
    assert failure is not None
    assert failure.attrib == {"message": LOST[0], "type": "lost-write, duplicate"}
    assert failure.text == "\n".join(LOST)
    out = str(invalid.findtext("system-out"))
    assert "folder: results/gates/x/runs/a" in out
    assert "repeat: faultline replay results/gates/x/runs/a" in out
    assert "planted bugs: ack-on-local-append" in out
    for told, kind, message in [
        (unknown, "unknown", "nothing was acknowledged"),
        (failed, "failed", "OSError: no room"),
        (skipped, "skipped", "the rest of the budget of 10 min is too short"),
    ]:
        error = told.find("error")
        assert error is not None
        assert error.attrib == {"message": message, "type": kind}
    mark = excused.find("skipped")
    assert mark is not None
    assert mark.attrib["message"] == "containers is optional"


def test_an_unfinished_gate_is_an_error(case: Make, gate: Make) -> None:
    """A gate with untried cases has an error, so that a CI system does not take it for green."""
    root = parsed(gate(case("valid"), planned=3))
    assert root[0].attrib["errors"] == "1"
    assert "2 cases did not run" in ElementTree.tostring(root, "unicode")


def test_what_xml_cannot_hold_is_replaced(case: Make, gate: Make, tmp_path: Path) -> None:
    """Characters that XML cannot hold are replaced, so that the file stays readable.

    A broker's last line may hold any characters.
    """
    why = "crash 1 · its last line: \x1b[31m<oops> & \x00\ud800 \U0001f4a5"
    file = tmp_path / "junit.xml"
    file.write_bytes(junit.encode(gate(case("invalid", anomalies={"crash": 1}, why=(why,))), file))
    (suite,) = JUnitXml.fromfile(str(file))
    (told,) = suite
    (result,) = told.result
    assert result.message == "crash 1 · its last line: �[31m<oops> & �� \U0001f4a5"


def test_the_system_of_a_case(case: Make, gate: Make) -> None:
    """A case that tests another system than this project's broker says so."""
    theirs = case(system="apache-kafka:3.9.1", name="x · apache-kafka:3.9.1 · seed 1")
    suite = parsed(gate(case(), theirs))[0]
    properties = {each.attrib["name"]: each.attrib["value"] for each in suite.iter("property")}
    assert properties == {"systems": "kafka, apache-kafka:3.9.1"}
    first, second = suite.findall("testcase")
    assert "system:" not in str(first.findtext("system-out"))
    assert "system: apache-kafka:3.9.1" in str(second.findtext("system-out")).splitlines()
    assert second.attrib["name"] == "x · apache-kafka:3.9.1 · seed 1"
