"""``cluster.json`` is written and read back; a folder without it has no facts."""

from pathlib import Path

import pytest

from model import cluster_facts
from model.cluster_facts import BrokerFacts, ClusterFacts, TopicFacts
from model.history import BadHistory

FACTS = ClusterFacts(
    release="4.1",
    mode="kraft",
    brokers=(BrokerFacts(id=1, host="a", port=9092, rack="r"),),
    voters=(1,),
    apis={0: (3, 12)},
    features={"transaction.version": 2},
    broker={"min.insync.replicas": "2"},
    differing={"min.insync.replicas": {1: "2", 2: "3"}},
    topics={"x": TopicFacts(partitions=2, replication_factor=3)},
    unread=("a reason",),
)


def test_written_facts_are_read(tmp_path: Path) -> None:
    """The file has all facts, and only its owner may read it."""
    cluster_facts.write(tmp_path, FACTS)
    assert cluster_facts.read(tmp_path) == FACTS
    assert (tmp_path / cluster_facts.FILE).stat().st_mode & 0o777 == 0o600


def test_no_file_is_no_facts(tmp_path: Path) -> None:
    """A folder of a run without the file has no facts."""
    assert cluster_facts.read(tmp_path) is None


@pytest.mark.parametrize("content", [b"", b"[]", b'{"apis": {"x": [1, 2]}}', b"[" * 100_000])
def test_other_content_is_refused(content: bytes, tmp_path: Path) -> None:
    """Content that is no description of a cluster is refused with the name of the file."""
    (tmp_path / cluster_facts.FILE).write_bytes(content)
    with pytest.raises(BadHistory, match=r"cluster\.json does not describe a cluster"):
        cluster_facts.read(tmp_path)


def test_large_file_is_refused(tmp_path: Path) -> None:
    """A file that is far too large is not decoded."""
    with (tmp_path / cluster_facts.FILE).open("wb") as file:
        file.truncate(cluster_facts.BYTES_MAX + 1)
    with pytest.raises(BadHistory, match="the maximum is"):
        cluster_facts.read(tmp_path)


def test_unreadable_file_is_refused(tmp_path: Path) -> None:
    """A folder in the file's place cannot be read."""
    (tmp_path / cluster_facts.FILE).mkdir()
    with pytest.raises(BadHistory, match="cannot be read"):
        cluster_facts.read(tmp_path)
