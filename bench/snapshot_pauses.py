"""Measures how long the event loop of a ZooKeeper stands still while it writes a snapshot.

    python -m bench.snapshot_pauses --znodes 100000

A task that sleeps for a millisecond at a time measures the pauses, while a client writes. The
snapshot is written as a whole first, as it was before, and then in slices.
"""

import argparse
import asyncio
import contextlib
import random
import sys
import tempfile
import time
from pathlib import Path

from broker_impl.platform.os_disk import OsDisk
from broker_impl.zookeeper import snapshot_file, standalone
from broker_impl.zookeeper.client import ZooKeeper
from broker_impl.zookeeper.history import History
from broker_impl.zookeeper.records import OPEN_ACL, Op
from broker_impl.zookeeper.server import Server
from broker_impl.zookeeper.store import Store
from broker_impl.zookeeper.txn_records import CreateTxn, Header, Proposal

DATA_BYTES = 100
BATCH = 1000


def main() -> int:
    """Print the longest pause of both ways; return 1 if slices do not shorten it tenfold."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--znodes", type=int, default=100_000)
    asked = parser.parse_args()
    pauses = {}
    for name, nodes in (("whole", 10**9), ("slices", snapshot_file.NODES_PER_SLICE)):
        with tempfile.TemporaryDirectory() as folder:
            pauses[name], took, writes = asyncio.run(_measure(Path(folder), asked.znodes, nodes))
        print(
            f"{asked.znodes:,} znodes, {name}: longest pause {pauses[name] * 1000:.1f} ms; "
            f"{took:.2f} s, {writes} writes meanwhile",
            flush=True,
        )
    return int(pauses["slices"] * 10 > pauses["whole"])


async def _measure(folder: Path, znodes: int, nodes_per_slice: int) -> tuple[float, float, int]:
    """Return the longest pause, how long the snapshot took, and the writes answered meanwhile."""
    snapshot_file.NODES_PER_SLICE = nodes_per_slice
    store = Store(OsDisk(folder), snap_count=znodes + 1)
    history = History(store)
    for first in range(1, znodes + 1, BATCH):
        history.log([_create(zxid) for zxid in range(first, min(first + BATCH, znodes + 1))])
        history.commit_to(history.last_zxid)
    pipeline = standalone.pipeline(
        history,
        secret=store.secret(random.randbytes),
        tick_ms=2000,
        wall_ms=lambda: time.time_ns() // 1_000_000,
        clock=asyncio.get_running_loop().time,
    )
    server = Server(pipeline)
    port = await server.start("127.0.0.1", 0)
    client = ZooKeeper(f"127.0.0.1:{port}", session_timeout_ms=40_000, rng=random.Random(1))
    longest = 0.0

    async def watch() -> None:
        nonlocal longest
        while True:
            before = time.perf_counter()
            await asyncio.sleep(0.001)
            longest = max(longest, time.perf_counter() - before - 0.001)

    watching = asyncio.create_task(watch())
    begun = time.perf_counter()
    await client.start()  # one transaction more: the snapshot begins
    writes = 0
    while not list((folder / "version-2").glob("snapshot.*[0-9a-f]")) or store.is_writing_snapshot:
        await client.create(f"/late-{writes}", bytes(DATA_BYTES))
        writes += 1
    took = time.perf_counter() - begun
    watching.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await watching
    await client.close()
    await server.stop()
    store.close()
    return longest, took, writes


def _create(zxid: int) -> Proposal:
    txn = CreateTxn(f"/node-{zxid:07}", bytes(DATA_BYTES), OPEN_ACL, False, zxid)
    return Proposal.of(Header(0, 0, zxid, 1, Op.CREATE), txn)


if __name__ == "__main__":
    sys.exit(main())
