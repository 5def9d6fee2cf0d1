"""The fixture of a simulated cluster."""

from pathlib import Path

import pytest

from tests.harness.cluster.simulated.lab import Lab


@pytest.fixture
def lab(tmp_path: Path) -> Lab:
    return Lab(tmp_path)
