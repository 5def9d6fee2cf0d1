"""Records every unexpected exit of a process in the history, as an ``info`` event ``crash``.

The event belongs to the nemesis and has no invocation. Checkers report it: a broker must not crash.
"""

import asyncio

from harness.engine.recorder import Recorder
from model.capabilities.cluster import Cluster, HasExits
from model.op import CRASH, NEMESIS

LOOK_S = 0.5


class Crashes:
    """Polls a cluster for unexpected exits, if the cluster can report them (:class:`HasExits`)."""

    def __init__(self, recorder: Recorder, cluster: Cluster) -> None:
        self._recorder = recorder
        self._cluster = cluster
        self._noted = 0

    async def run(self) -> None:
        """Poll until cancelled."""
        while True:
            self.note()
            await asyncio.sleep(LOOK_S)

    def note(self) -> None:
        """Record the processes that have exited since the last call."""
        if not isinstance(self._cluster, HasExits):
            return
        ended = self._cluster.unexpected_exits[self._noted :]
        self._noted += len(ended)
        for end in ended:
            value = {
                "node": end.node,
                "serves": end.node in self._cluster.nodes,
                "status": end.status,
                "last_line": end.last_line,
            }
            self._recorder.record(NEMESIS, "info", CRASH, value)
