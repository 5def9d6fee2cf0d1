"""The chunks of a file that every executor sees by its path."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

from checkers import history_file
from checkers.distributed import chunk_tasks, refusals
from checkers.distributed.chunk_tasks import Prepared
from checkers.distributed.chunks import Chunk
from checkers.distributed.runner import Runner


class FileSource:
    """The :class:`~checkers.distributed.source.Source` of such a file.

    ``given`` are its chunks; ``scratch`` is a folder that all tasks can use, for the typed events
    of lines.
    """

    def __init__(self, path: Path, given: Sequence[Chunk], scratch: Path) -> None:
        self._path, self._given, self._scratch = path, given, scratch
        self.name = str(path)

    def prepared(self, runner: Runner) -> Sequence[Prepared]:
        """Read all chunks."""
        prepared = runner.each(partial(_prepare, self._scratch), list(enumerate(self._given)))
        refusals.unreadable(self._path, self._given, prepared)
        self.torn(prepared)  # it may refuse the history
        return prepared

    def place(self, event: int, row: int) -> str:
        """Return where the event with this index and row is."""
        return history_file.place(event, row, self._path)

    def torn(self, prepared: Sequence[Prepared]) -> str | None:
        """Return what was left out at the end of the file."""
        return refusals.torn(self._path, self._given, prepared)


def _prepare(scratch: Path, item: tuple[int, Chunk]) -> Prepared:
    number, chunk = item
    return chunk_tasks.prepare(chunk, scratch / f"chunk-{number:06}.parquet")
