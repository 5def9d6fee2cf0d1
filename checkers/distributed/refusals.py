"""What is refused, left out or doubted in the chunks of a history, in the words of the whole."""

from collections.abc import Sequence
from pathlib import Path

from checkers import history_file, segments
from checkers.distributed.borders import Refusal
from checkers.distributed.chunk_tasks import Prepared, Scanned
from checkers.distributed.chunks import Chunk
from checkers.distributed.source import Source
from checkers.jsonl import torn_line
from model.history import BadHistory


def unreadable(path: Path, given: Sequence[Chunk], prepared: Sequence[Prepared]) -> None:
    """Raise the error about the first chunk that cannot be read."""
    for chunk, each in zip(given, prepared, strict=True):
        if isinstance(each.bad, str):
            raise BadHistory(each.bad)
        if each.bad is not None:
            line = _lines_before(chunk) + each.bad.line
            segment = path.with_name(Path(chunk.path).name)
            raise BadHistory(f"{segment}, line {line}: {each.bad}")


def misfits(source: Source, broken: Refusal | None, scanned: Sequence[Scanned]) -> tuple[str, ...]:
    """Return the doubts about completions; raise the error about the first event that cannot be
    judged, or else about the first completion that does not fit."""
    found = [each.broken for each in scanned if each.broken is not None]
    first = min((*found, *([] if broken is None else [broken])), default=None)
    if first is not None:
        raise BadHistory(source.place(first.event, first.row) + first.why)
    doubts = []
    for row, index, misfit in (each for one in scanned for each in one.misfits):
        if not misfit.is_doubt:
            raise BadHistory(source.place(index, row) + misfit.why)
        doubts.append(history_file.place(index, row, None) + misfit.why)
    return tuple(doubts)


def torn(path: Path, given: Sequence[Chunk], prepared: Sequence[Prepared]) -> str | None:
    """Return what was left out at the end of the history, as one sentence.

    Raises :class:`~model.history.BadHistory` if that is the end of a segment before the last one.
    """
    for chunk, each in zip(given, prepared, strict=True):
        if isinstance(each.torn, str):
            return each.torn
        if each.torn is not None:
            sentence = torn_line(_lines_before(chunk) + each.torn)
            if chunk.path == given[-1].path:
                return sentence
            following = next(one for one in given[given.index(chunk) :] if one.path != chunk.path)
            one, other = (path.with_name(Path(each.path).name) for each in (chunk, following))
            raise BadHistory(segments.incomplete(one, other, sentence))
    return None


def _lines_before(chunk: Chunk) -> int:
    """Return how many lines a file has before a chunk."""
    with Path(chunk.path).open("rb") as file:
        left, found = chunk.begin, 0
        while left and (text := file.read(min(left, 1 << 20))):
            found += text.count(b"\n")
            left -= len(text)
    return found
