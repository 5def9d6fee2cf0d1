"""What ends by itself is told in the history, where checkers find it: a broker may not crash.

An event of the nemesis, ``crash``, of type ``info``: there was nobody to invoke it.
"""

import asyncio

from harness.engine.recorder import Recorder
from model.op import CRASH, NEMESIS
from model.roles import Cluster, HasExits

LOOK_S = 0.5


class Crashes:
    """Watches a cluster whose processes may end, if it is one."""

    def __init__(self, recorder: Recorder, cluster: Cluster) -> None:
        self._recorder = recorder
        self._cluster = cluster
        self._noted = 0

    async def run(self) -> None:
        """Look now and then, until cancelled."""
        while True:
            self.note()
            await asyncio.sleep(LOOK_S)

    def note(self) -> None:
        """Record those that have ended since the last look."""
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
