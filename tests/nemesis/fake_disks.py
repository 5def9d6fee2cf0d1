"""The disks of a cluster that exists only in memory."""

from collections import Counter
from collections.abc import Iterable

from model.capabilities.machines import Flip
from model.roles import NodeId

DISK_BYTES = 64 << 20


class FakeDisks:
    """Disks that fill, fail, slow down and lose bits at once."""

    immortal: bool
    """Faults and orders have no effect on the cluster."""
    log: list[str]

    def __init__(self, nodes: Iterable[NodeId]) -> None:
        nodes = [*nodes]
        self.free = dict.fromkeys(nodes, DISK_BYTES)
        self.disk_s = dict.fromkeys(nodes, 0.0001)
        self.stored: set[NodeId] = {*nodes}
        """Nodes that store batches of every partition."""
        self.damaged: set[NodeId] = set()
        self.directories = 1
        """How many data directories each node has."""
        self.unused = False
        """No node uses a directory that fails."""
        self.failed: dict[tuple[NodeId, int], int] = {}
        """How many operations have failed in each directory that fails."""
        self.fails: Counter[str] = Counter()
        """How often each method will still raise; methods that break something do so first."""

    def _may_fail(self, method: str) -> None:
        if self.fails[method] > 0:
            self.fails[method] -= 1
            raise OSError(f"{method}: the engine is gone")

    async def fill_disk(self, node: NodeId) -> None:
        if not self.immortal:
            self.free[node] = 0
        self._may_fail("fill_disk")

    async def free_disk(self, node: NodeId) -> None:
        self._may_fail("free_disk")
        self.log.append(f"free {node}")
        self.free[node] = DISK_BYTES

    async def disk_free_bytes(self, node: NodeId) -> int:
        self._may_fail("disk_free_bytes")
        return self.free[node]

    def directory_count(self, node: NodeId) -> int:
        return self.directories

    async def fail_directory(self, node: NodeId, number: int) -> None:
        self.failed[node, number] = 0 if self.immortal or self.unused else 3
        self._may_fail("fail_directory")

    async def repair_directory(self, node: NodeId, number: int) -> None:
        self._may_fail("repair_directory")
        self.log.append(f"repair {number} of {node}")
        self.failed.pop((node, number), None)

    async def failed_operations(self, node: NodeId, number: int) -> int | None:
        return self.failed.get((node, number))

    async def probe_directory(self, node: NodeId, number: int) -> bool:
        return self.immortal

    async def slow_disk(self, node: NodeId, seconds: float) -> None:
        if not self.immortal:
            self.disk_s[node] = 0.0001 + seconds
        self._may_fail("slow_disk")

    async def quicken_disk(self, node: NodeId) -> None:
        self._may_fail("quicken_disk")
        self.disk_s[node] = 0.0001

    async def disk_takes_s(self, node: NodeId) -> float:
        return self.disk_s[node]

    async def flip_bit(self, node: NodeId, key: str) -> Flip | None:
        if node not in self.stored:
            return None
        if not self.immortal:
            self.damaged.add(node)
        return Flip(f"{key}/0.log", at=70, bit=3, batch_at=0)

    async def is_damaged(self, node: NodeId, flip: Flip) -> bool:
        return node in self.damaged

    async def flip_back(self, node: NodeId, flip: Flip) -> None:
        self._may_fail("flip_back")
        self.damaged.discard(node)
