"""Checkpoint files have the text formats of Kafka, and other content is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from broker_impl.log import checkpoints
from broker_impl.log.checkpoints import MalformedCheckpoint
from broker_impl.log.epochs import EpochStart
from broker_impl.wire.types import TopicPartition

partitions = st.builds(
    TopicPartition, st.text("abc._-", min_size=1, max_size=9), st.integers(0, 99)
)


@given(st.dictionaries(partitions, st.integers(0, 2**63 - 1), max_size=9))
def test_offsets_come_back(offsets: dict[TopicPartition, int]) -> None:
    """Offsets that are formatted are parsed as they were."""
    assert checkpoints.parse_offsets(checkpoints.format_offsets(offsets)) == offsets


def test_the_offsets_format_is_kafkas() -> None:
    """An offset checkpoint has a version, a count, then topic, partition and offset, sorted."""
    text = checkpoints.format_offsets({TopicPartition("b", 1): 7, TopicPartition("a", 10): 5})
    assert text == b"0\n2\na 10 5\nb 1 7\n"


def test_epochs_come_back() -> None:
    """An epoch checkpoint has an epoch and its start offset per line."""
    text = checkpoints.format_epochs([EpochStart(0, 0), EpochStart(3, 17)])
    assert text == b"0\n2\n0 0\n3 17\n"
    assert checkpoints.parse_epochs(text) == [(0, 0), (3, 17)]


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"0\n",
        b"1\n0\n",
        b"0\n2\na 0 1\n",
        b"0\n1\na 0\n",
        b"0\n1\na 0 x\n",
        b"x\n0\n",
        b"\xff",
    ],
)
def test_malformed_offsets_are_refused(text: bytes) -> None:
    """Another version, a wrong number of entries, or a broken entry is refused."""
    with pytest.raises(MalformedCheckpoint):
        checkpoints.parse_offsets(text)


@pytest.mark.parametrize("text", [b"0\n1\n1\n", b"0\n1\n-1 0\n", b"0\n1\n0 -1\n", b"0\n1\nx y\n"])
def test_malformed_epochs_are_refused(text: bytes) -> None:
    """Broken entries, negative epochs and negative offsets are refused."""
    with pytest.raises(MalformedCheckpoint):
        checkpoints.parse_epochs(text)


@given(
    st.lists(st.builds(EpochStart, st.integers(0, 99), st.integers(0, 999)), max_size=4),
    st.integers(0),
)
def test_no_part_of_a_file_is_a_file(entries: list[EpochStart], at: int) -> None:
    """A power loss may leave any beginning of a file, also one that ends within a number."""
    text = checkpoints.format_epochs(entries)
    with pytest.raises(MalformedCheckpoint):
        checkpoints.parse_epochs(text[: at % len(text)])


def test_properties_are_read_as_java_writes_them() -> None:
    """Properties are read as Java writes them, without comments and blank lines."""
    text = b"#\n#Mon Jan 01\n\ncluster.id=a=b\nbroker.id = 1\n"
    assert checkpoints.parse_properties(text) == {"cluster.id": "a=b", "broker.id": "1"}
    assert checkpoints.format_properties({"version": "0"}) == b"version=0\n"
    with pytest.raises(MalformedCheckpoint):
        checkpoints.parse_properties(b"\xff")
