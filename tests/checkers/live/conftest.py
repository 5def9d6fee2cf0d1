"""A growing history for every test."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.checkers.live.recording import Recording


@pytest.fixture
def recording(tmp_path: Path) -> Iterator[Recording]:
    """Yield a recording that is judged by the strictest contract."""
    made = Recording(tmp_path)
    yield made
    made.close()
