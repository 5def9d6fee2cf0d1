"""The notebook runs from its first cell to its last one, and prints what the lake has."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.harness.app.lake import made_rows
from tests.harness.app.lake.made_rows import rows, slower_from

NOTEBOOK = Path(__file__).resolve().parent.parent / "examples" / "07_lake.ipynb"
CELLS_MAX = 8


def cells() -> list[str]:
    """The code of the notebook's cells."""
    document = json.loads(NOTEBOOK.read_text())
    found = [cell for cell in document["cells"] if cell["cell_type"] == "code"]
    assert [cell["outputs"] for cell in found] == [[]] * len(found), "it is stored without results"
    return ["".join(cell["source"]) for cell in found]


def test_it_is_small() -> None:
    """The notebook is short enough to be read, and has no results in it."""
    assert 0 < len(cells()) <= CELLS_MAX


@pytest.mark.slow
@pytest.mark.spark
@pytest.mark.prove
def test_its_cells_run_in_order(tmp_path: Path, project_environment: dict[str, str]) -> None:
    """Every cell runs after those before it; the last result is what became worse."""
    fields = {
        "acked": 10,
        "fault_list": [{"fault_id": 1, "fault": "kill", "proved": True}],
        "spans": [{"kind": "recovery", "fault_id": 1, "from_s": 1.0, "seconds": 0.25}],
        "settings": [
            {"component": "broker", "key": "zookeeper.session.timeout.ms", "value": "2000"}
        ],
        "latency_list": [
            {"operation": "send", "phase": "work", "outcome": "ok", "count": 3, "p50_ms": 4.0,
             "p99_ms": 8.0},
        ],
    }  # fmt: skip
    made_rows.lake(tmp_path / "lake", rows(range(6), 16, slower_from(3), **fields))
    script = "\n\n".join(cells())
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=tmp_path,
        env=project_environment | {"PYTHONPATH": str(NOTEBOOK.parent.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
    for words in ("kill       96      96      0.25", "2000      send    96     4.0     8.0",
                  "WORSE    nightly · kafka: longest time", "trends.html"):  # fmt: skip
        assert words in done.stdout, done.stdout
    assert (tmp_path / "trends.html").exists()
