"""What an observer reads from the disks of ZooKeeper's servers."""

from broker_impl.zookeeper import snapshot, txn_log
from harness.cluster.observe import ensemble_snapshots
from harness.simulation.disk_inode import Inode
from harness.simulation.disk_names import Directory


def test_a_snapshot_that_is_being_written_is_no_snapshot() -> None:
    """A file that is not complete has another suffix, and is left out, as the server does."""
    folder = Directory()
    names = (snapshot.name(0x10), f"{snapshot.name(0x20)}.partial", txn_log.name(0x30))
    folder.names.update({name: Inode() for name in names})
    numbered = [zxid for zxid, _ in ensemble_snapshots._numbered(folder, snapshot.name)]
    assert numbered == [0x10]
    assert ensemble_snapshots._base(folder, []) == 0x10
