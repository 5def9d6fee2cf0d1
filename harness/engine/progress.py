"""A running count of recorded events, for progress and for the partitions to read at the end."""

import asyncio
from dataclasses import dataclass, field

from model.op import CRASH, NEMESIS, RECOVER, UNRESPONSIVE, ZNODE_READS, Op

WRITES = ("send", "txn")
READS = ("poll", "txn")


@dataclass(slots=True)
class Tally:
    """Observes a recorder and counts."""

    phase: str = "starting"
    ops: int = 0
    """Completed operations of clients."""
    acked: int = 0
    """Records acknowledged."""
    read: int = 0
    """Records read; a record that was read twice counts twice."""
    info: int = 0
    faults: int = 0
    """Faults applied so far."""
    active: dict[int, str] = field(default_factory=dict)
    """Faults applied and not yet healed, by id."""
    calm_since_ns: int | None = None
    """When the cluster began to recover, after all faults were healed."""
    keys: dict[str, None] = field(default_factory=dict)
    """Partitions that a client tried to write, in order of their first write."""
    _awaited: dict[str, list["asyncio.Future[None]"]] = field(default_factory=dict)

    async def beginning(self, f: str) -> None:
        """Return when a client next invokes an operation named ``f``."""
        begun: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._awaited.setdefault(f, []).append(begun)
        await begun

    def __call__(self, op: Op) -> None:
        if op.process == NEMESIS:
            if op.f == RECOVER:
                if op.type == "invoke":
                    self.calm_since_ns = op.time_ns
            elif op.f not in (CRASH, UNRESPONSIVE):
                self._fault(op)
        elif op.type == "invoke":
            for begun in self._awaited.pop(op.f, ()):
                if not begun.done():
                    begun.set_result(None)
            if op.f in WRITES:
                self.keys.update((mop[1], None) for mop in op.value if mop[0] == "send")
        else:
            self._completion(op)

    def _completion(self, op: Op) -> None:
        self.ops += 1
        self.info += op.type == "info"
        if isinstance(op.value, dict):  # of ZooKeeper
            is_read = op.f in ZNODE_READS
            self.acked += op.type == "ok" and not is_read
            self.read += op.type == "ok" and is_read
            return
        if op.f == "send" or (op.f == "txn" and op.type == "ok"):
            sends = (mop for mop in op.value if mop[0] == "send")
            self.acked += sum(isinstance(mop[2], list) for mop in sends)
        if op.f in READS:
            polls = (mop[1] for mop in op.value if mop[0] == "poll" and len(mop) > 1)
            self.read += sum(len(pairs) for polled in polls for pairs in polled.values())

    def _fault(self, op: Op) -> None:
        if op.type == "invoke":
            return
        if op.value["phase"] == "apply":
            self.faults += 1
            self.active[op.value["id"]] = op.f
        elif op.value["phase"] == "heal":
            self.active.pop(op.value["id"], None)
