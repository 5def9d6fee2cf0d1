"""Writes the log of each simulated node to a file of its own, as real nodes do.

All nodes share the one ``logging`` of this process; the world knows which node logs a line.
A node that logs an exception as an error has met a state that its code does not expect.
"""

import contextlib
import logging
import time
import traceback
from collections.abc import Callable, Iterator
from io import TextIOWrapper
from pathlib import Path

from harness.simulation.world import World
from model.roles import NodeId

ROOT = "broker_impl"
"""The parent of all loggers of nodes."""


class NodeLogs(logging.Handler):
    """Writes ``<node>/log.txt`` below a folder; times are those of the node's own wall clock."""

    def __init__(self, folder: Path, world: World) -> None:
        super().__init__()
        self._folder = folder
        self._world = world
        self._files: dict[NodeId, TextIOWrapper] = {}
        self._last: dict[NodeId, str] = {}
        self.on_error: Callable[[NodeId, str], None] | None = None
        """Is called with each exception that a node logs and survives, and where it was raised."""
        formatter = logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s")
        formatter.converter = time.gmtime
        self.setFormatter(formatter)

    def open(self, node: NodeId) -> None:
        """Begin to write this node's log."""
        folder = self._folder / node
        folder.mkdir(parents=True, exist_ok=True)
        self._files[node] = (folder / "log.txt").open("a")

    def last_line(self, node: NodeId) -> str:
        """The last line of a node's log, empty if there is none."""
        return self._last.get(node, "")

    def emit(self, record: logging.LogRecord) -> None:
        speaker = self._world.current
        file = self._files.get(speaker.host.name) if speaker is not None else None
        if speaker is None or file is None:
            return
        text = self.format(record)
        file.write(text + "\n")
        self._last[speaker.host.name] = text.rpartition("\n")[2]
        error = record.exc_info[1] if record.exc_info else None
        if error is not None and record.levelno == logging.ERROR and self.on_error is not None:
            self.on_error(speaker.host.name, described(error))

    def close(self) -> None:
        for file in self._files.values():
            file.close()
        self._files.clear()
        super().close()


def described(error: BaseException) -> str:
    """Return the error and the function that raised it, without addresses and line numbers."""
    [*_, frame] = traceback.extract_tb(error.__traceback__) or [None]
    text = f"{type(error).__name__}: {error}"
    return text if frame is None else f"{text}, in {Path(frame.filename).name}, {frame.name}"


@contextlib.contextmanager
def listening(logs: NodeLogs) -> Iterator[None]:
    """Send the nodes' log lines from INFO on to ``logs``, and nowhere else."""
    root = logging.getLogger(ROOT)
    level, propagates = root.level, root.propagate
    root.addHandler(logs)
    root.setLevel(logging.INFO)
    root.propagate = False
    try:
        yield
    finally:
        root.propagate = propagates
        root.setLevel(level)
        root.removeHandler(logs)
        logs.close()
