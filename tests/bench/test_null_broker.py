"""The broker that stores nothing, as a process."""

from pathlib import Path

import pytest

from bench import raw
from bench.nodes import Nodes

pytestmark = pytest.mark.slow


def test_it_answers_like_a_broker_and_is_gone_afterwards(tmp_path: Path) -> None:
    """The null broker acknowledges each produce, and leaving the block ends its process."""
    with Nodes(tmp_path) as nodes:
        null = nodes.null_broker(["t"])
        took = raw.produce_alone(null.address, "t", value_bytes=10, count=3)
        assert len(took) == 3
        assert null.process.poll() is None
    assert null.process.poll() is not None
