"""The logs of nodes: links to them, and the lines from around a finding's witnesses.

A line is matched by its time of day, so the start time of the run must be known. Nodes log in UTC,
each by its own clock. On one machine, and in a simulation, all clocks agree until a fault moves
one.
"""

import re
from array import array
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from harness.app.log_lines import epoch_ns, lines, plain, stamp
from harness.app.report import links
from harness.app.report.columns import Ints
from harness.app.run_start import RunStart

FOLDER = "nodes"
LOG = "log.txt"
LINES = 24
"""The number of lines that are quoted around the witnesses of one finding."""
SCANNED = 3000
"""The number of lines of a log that are examined for a finding: those nearest in time."""
AROUND_NS = 1_500_000_000
"""How long before the first witness, and after the last one, a line may be."""
AGAIN_NS = 1_000_000_000
"""Lines with the same text are merged if they are no further apart."""
CHARACTERS = 300
FOLLOWING = 4
"""The number of lines without a time, such as a traceback's, quoted with the line before."""

_PARTITION = re.compile(r"(?<![\w.-])(?!broker-\d+(?![\w.-]))[\w.]+(?:-[\w.]+)*-\d+(?=: |,| |$)")
"""A word that brokers write for a partition: a topic and a number."""
_DIGITS = re.compile(r"\d+")
_INCARNATION = re.compile(r"~\d+(?=-\d+$)")
_GRAVE = re.compile(r"\b(?:WARN|WARNING|ERROR|FATAL|CRITICAL|Traceback)\b")


@dataclass(frozen=True, slots=True)
class NodeLog:
    """The log of a node."""

    node: str
    path: Path
    link: str
    """The link from the page's folder."""
    bytes: int
    others: tuple[tuple[str, str], ...]
    """Other files of the node, such as its settings: name and link."""


@dataclass(frozen=True, slots=True)
class Said:
    """A log line, possibly repeated."""

    node: str
    time_ns: int
    """Nanoseconds since the run began, by the node's own clock."""
    text: str
    number: int
    """The number of the line in the log, from 1."""
    is_about: bool
    """True if it names the partition."""
    is_about_another: bool = False
    """True if it names only other partitions."""
    times: int = 1
    """How often the node logged this text in a row, ignoring numbers; this is the first time."""

    @property
    def rank(self) -> int:
        """The line's importance to a reader, from 0: lines of the partition, warnings, others."""
        return 0 if self.is_about else 1 if _GRAVE.search(self.text) else 2


@dataclass(frozen=True, slots=True)
class Excerpt:
    """The lines of all logs from around some witnesses."""

    lines: list[Said]
    """The quoted lines, by time."""
    left: int
    """The number of lines of the same time span that are not quoted."""


def find(folder: Path, page: Path | None = None) -> list[NodeLog]:
    """Return the logs of a run's folder, by the names of their nodes.

    Links that lead out of the folder are ignored. ``page`` is the folder of the page that links to
    the logs, if it is another one.
    """
    nodes = folder / FOLDER
    found = []
    for path in sorted(nodes.glob(f"*/{LOG}")):
        if not path.is_file() or path.resolve() != nodes.resolve() / path.parent.name / LOG:
            continue
        beside = sorted(
            other for other in path.parent.iterdir() if other.is_file() and other.name != LOG
        )
        others = tuple((other.name, links.to(other, page or folder)) for other in beside[:4])
        size = path.stat().st_size
        link = links.to(path, page or folder)
        found.append(NodeLog(path.parent.name, path, link, size, others))
    return found


class Logs:
    """The lines of all logs, by time; each log is read when the first excerpt is requested."""

    def __init__(self, found: Sequence[NodeLog], start: RunStart | None) -> None:
        self._found = found
        self._start = start
        self._stamped: list[_Stamped] | None = None

    @property
    def are_timed(self) -> bool:
        """True if the start time of the run is known, so that lines can be matched with events."""
        return self._start is not None

    def around(self, witnesses_ns: Sequence[int], key: str | None) -> Excerpt:
        """Return the lines from shortly before the first of these times to shortly after the last.

        Lines that name the partition take precedence, then warnings, then the lines nearest in
        time. Lines that are only about other partitions are left out.
        """
        if self._start is None or not witnesses_ns:
            return Excerpt([], 0)
        if self._stamped is None:
            start_ns = epoch_ns(self._start.started)
            self._stamped = [_Stamped(log, start_ns) for log in self._found]
        times = np.array(sorted(witnesses_ns), dtype=np.int64)
        candidates: list[tuple[tuple[int, int, int], Said]] = []
        total = 0
        for place, log in enumerate(self._stamped):
            rows = log.within(int(times[0]) - AROUND_NS, int(times[-1]) + AROUND_NS)
            total += len(rows)
            away = np.abs(log.time_ns[rows][:, None] - times[None, :]).min(axis=1)
            nearest = np.argsort(away, kind="stable")[:SCANNED]
            read = log.read(np.sort(rows[nearest]).tolist(), key)
            wanted = (said for said in read if said.rank < 2 or not said.is_about_another)
            for said in repeats(wanted):
                distance = int(np.abs(times - said.time_ns).min())
                candidates.append(((said.rank, distance, place), said))
        candidates.sort(key=lambda candidate: (*candidate[0], candidate[1].number))
        lines = [said for _, said in candidates[:LINES]]
        lines.sort(key=lambda said: (said.time_ns, said.node, said.number))
        return Excerpt(lines, total - sum(said.times for said in lines))


def repeats(lines: Iterable[Said]) -> Iterator[Said]:
    """Merge lines of one node that have the same text, apart from numbers, within a second."""
    first: Said | None = None
    for said in lines:
        if first is not None and _is_again(first, said):
            first = replace(first, times=first.times + 1)
            continue
        if first is not None:
            yield first
        first = said
    if first is not None:
        yield first


def _is_again(first: Said, said: Said) -> bool:
    return (
        said.is_about == first.is_about
        and abs(said.time_ns - first.time_ns) < AGAIN_NS
        and _DIGITS.sub("#", first.text) == _DIGITS.sub("#", said.text)
    )


class _Stamped:
    """The lines of a log that begin with a time."""

    def __init__(self, log: NodeLog, start_ns: int) -> None:
        self._log = log
        times, places, numbers = array("q"), array("q"), array("q")
        for number, (at, line) in enumerate(lines(log.path), start=1):
            stamp_ns = stamp(line)
            if stamp_ns is not None:
                times.append(stamp_ns - start_ns)
                places.append(at)
                numbers.append(number)
        self.time_ns: Ints = np.frombuffer(times, dtype=np.int64)
        self._at: Ints = np.frombuffer(places, dtype=np.int64)
        self._number: Ints = np.frombuffer(numbers, dtype=np.int64)

    def within(self, begin_ns: int, end_ns: int) -> Ints:
        """Return the rows of this time span; they need not be in order, because clocks may jump."""
        return np.flatnonzero((self.time_ns >= begin_ns) & (self.time_ns <= end_ns))

    def read(self, rows: Sequence[int], key: str | None) -> Iterable[Said]:
        """Return the lines of these rows, each with the following lines that have no time."""
        names = _names(key) if key else None
        with self._log.path.open("rb") as file:
            for row in rows:
                file.seek(int(self._at[row]))
                parts = [file.readline(4 * CHARACTERS)]
                for _ in range(FOLLOWING):
                    following = file.readline(4 * CHARACTERS)
                    if not following.strip() or stamp(following) is not None:
                        break
                    parts.append(following)
                text = b"".join(parts).decode(errors="replace").rstrip()
                text = plain(text)
                is_about = names is not None and names.search(text) is not None
                yield Said(
                    node=self._log.node,
                    time_ns=int(self.time_ns[row]),
                    text=text if len(text) <= CHARACTERS else text[: CHARACTERS - 1] + "…",
                    number=int(self._number[row]),
                    is_about=is_about,
                    is_about_another=names is not None
                    and not is_about
                    and _PARTITION.search(text) is not None,
                )


def _names(key: str) -> re.Pattern[str]:
    """Return a pattern for the partition's name on the brokers.

    There, every incarnation of a topic has the same name.
    """
    return re.compile(rf"(?<![\w.-]){re.escape(_INCARNATION.sub('', key))}(?![\w.-])")
