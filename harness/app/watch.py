"""Judges a run while it lasts, and ends it at the first illegal anomaly (``run --watch``).

The run goes on if the watch fails: the whole history is judged at the end in any case.
"""

import asyncio
import concurrent.futures
import contextlib
import multiprocessing
import os
import signal
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from checkers.expectations import Contract
from checkers.live.here import Here
from checkers.live.partition import Looked, Seen
from checkers.verdict import Verdict
from harness.app import catalogue, lifetime, temporary
from harness.engine.early_end import EarlyEnd
from harness.engine.recorder import Lines
from harness.engine.tail import Tail
from model import batch as batch_
from model.batch import Batch
from model.finding import Finding
from model.op import Op
from model.plan import Plan

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

FILE = "watch.jsonl"
"""The file of a run's folder with what was found during the run, one line each."""
PREFIX = ".watch-"
"""How the name begins of the temporary folder with the files of a stream."""
TICK_S = 1.0
"""How often a batch is judged, in seconds."""
VIRTUAL_TICK_S = 5.0
"""How often in a simulation, in its own seconds: judging takes no time there."""


READY_S = 120.0
"""How long a run waits until its judge works."""
_NO_PARTITIONS = tuple(f"no-partition-{number}" for number in range(8))
"""Enough names that each of Spark's tasks has one."""


class Witnessed(msgspec.Struct, frozen=True, kw_only=True):
    """A line of ``watch.jsonl``: an illegal anomaly that was seen during the run."""

    witnessed_ns: int
    """When its last witness was recorded, in nanoseconds since the run began."""
    found_ns: int
    """When it was found."""
    batch: int
    finding: Finding


class LiveJudge(Protocol):
    """Judges batches somewhere, in their order, and passes on what they show."""

    def submit(self, batch: Batch, contract: Contract) -> None:
        """Judge a batch some time."""
        ...

    async def ready(self) -> None:
        """Return when batches are judged."""
        ...

    def error(self) -> str | None:
        """Return why nothing is judged any more; ``None`` if it is."""
        ...


class Watch:
    """What a run has shown so far.

    ``is_virtual`` says that the run is simulated: then batches are judged between two of its
    events, every :data:`VIRTUAL_TICK_S` of its own time.
    """

    def __init__(
        self,
        folder: Path,
        *,
        is_virtual: bool,
        say: Callable[[str], None],
        early_end: EarlyEnd,
    ) -> None:
        self.early_end = early_end
        self.first: Seen | None = None
        """The anomaly that ended the run."""
        self._is_virtual, self._say = is_virtual, say
        self._tail = Tail()
        self._lines = Lines(folder / FILE)
        self._judge: LiveJudge = Immediately(self.receive)
        self._contract: Contract | None = None
        self._now_ns: Callable[[], int] = lambda: 0
        self._next_ns = 0
        self._said = set[str]()

    def use(self, judge: LiveJudge) -> None:
        """Have batches judged by this judge."""
        self._judge = judge

    async def begin(self, contract: Contract, now_ns: Callable[[], int]) -> None:
        """Wait until the judge works. ``now_ns`` is the clock of the history that begins now."""
        if not self._is_virtual:  # waiting would change the order of a simulation's events
            try:
                await asyncio.wait_for(self._judge.ready(), READY_S)
            except TimeoutError:
                self.problem(f"judging has not begun within {READY_S:.0f} s, and the run begins")
        self._contract, self._now_ns = contract, now_ns

    def observe(self, op: Op, path: Path, begin: int, end: int) -> None:
        """Note an event of the history (:data:`~harness.engine.recorder.PlaceObserver`)."""
        self._tail.observe(op, path, begin, end)
        if self._is_virtual and op.time_ns >= self._next_ns:
            self._next_ns = op.time_ns + int(VIRTUAL_TICK_S * 1e9)
            self.look()

    def look(self) -> None:
        """Have everything judged that was recorded since the last call."""
        if self._contract is None:
            return
        for batch in self._tail.batches():
            self._judge.submit(batch, self._contract)
        if (error := self._judge.error()) is not None:
            self.problem(f"the run is not watched any more: {error}")

    def receive(self, looked: Looked) -> None:
        """Note what a batch has shown; the first illegal anomaly ends the run."""
        for each in looked.seen:
            row = Witnessed(
                witnessed_ns=each.witnessed_ns,
                found_ns=self._now_ns(),
                batch=each.batch,
                finding=each.finding,
            )
            self._lines.append(msgspec.json.encode(row) + b"\n")
        for crash in looked.crashed:
            self.problem(crash)
        if looked.seen and self.first is None:
            self.first = looked.seen[0]
            self._say(_ended(self.first))
            self.early_end.ask()

    def problem(self, what: str) -> None:
        """Report once why something is not watched."""
        if what not in self._said:
            self._said.add(what)
            self._say(f"watch: {what}")

    def close(self) -> None:
        """Close the file."""
        self._lines.close()


@contextlib.contextmanager
def opened(folder: Path, plan: Plan, say: Callable[[str], None]) -> Iterator[Watch]:
    """Yield the watch of a run that is about to begin in this folder."""
    target = catalogue.TARGETS[plan.target]
    early_end = EarlyEnd(heals=not target.owns_cluster)
    watch = Watch(folder, is_virtual=target.is_virtual, say=say, early_end=early_end)
    try:
        yield watch
    finally:
        watch.close()


def is_unconfirmed(watch: Watch | None, verdict: Verdict) -> bool:
    """Return whether an anomaly ended a run that the judgement of its whole history does not
    show."""
    return watch is not None and watch.first is not None and verdict.valid is not False


def _ended(seen: Seen) -> str:
    f = seen.finding
    where = f" of {f.key}" if f.key else ""
    return f"the run ends, because the history so far shows {f.anomaly}{where}: {f.why}"


class Immediately:
    """Judges each batch at once, in this process, on the thread that records."""

    def __init__(self, receive: Callable[[Looked], None]) -> None:
        self._here, self._receive = Here(), receive

    def submit(self, batch: Batch, contract: Contract) -> None:
        """Judge a batch."""
        self._receive(self._here.judge(batch, contract))

    async def ready(self) -> None:
        """Return at once."""

    def error(self) -> str | None:
        """Return ``None``: an error is raised where it happens."""
        return None


class _Elsewhere:
    """Judges batches off the thread that records, so that the clients of a run are not delayed."""

    def __init__(self, receive: Callable[[Looked], None]) -> None:
        self._loop, self._receive = asyncio.get_running_loop(), receive
        self._works = asyncio.Event()
        self._failure: str | None = None

    async def ready(self) -> None:
        """Return when the first batch has been judged, or cannot be."""
        await self._works.wait()

    def _fail(self, error: BaseException) -> None:
        self._failure = self._failure or f"{type(error).__name__}: {error}".splitlines()[0]
        self._on_loop(self._works.set)

    def _received(self, looked: Looked) -> None:
        self._on_loop(self._works.set)
        self._on_loop(self._receive, looked)

    def _on_loop(self, call: Callable[..., None], *arguments: Any) -> None:
        with contextlib.suppress(RuntimeError):  # the run has ended
            self._loop.call_soon_threadsafe(call, *arguments)


class InProcess(_Elsewhere):
    """Judges batches in another process."""

    def __init__(self, receive: Callable[[Looked], None]) -> None:
        super().__init__(receive)
        self._pool = concurrent.futures.ProcessPoolExecutor(
            1, multiprocessing.get_context("spawn"), _begin_worker, (os.getpid(),)
        )

    def submit(self, batch: Batch, contract: Contract) -> None:
        """Send a batch to the process."""
        try:
            self._pool.submit(_judge, batch, contract).add_done_callback(self._done)
        except RuntimeError as error:  # the process has died
            self._fail(error)

    def _done(self, future: "concurrent.futures.Future[Looked]") -> None:
        if future.cancelled():
            return
        error = future.exception()
        if error is not None:
            self._fail(error)
        else:
            self._received(future.result())

    def error(self) -> str | None:
        """Return why the process does not judge any more."""
        return self._failure

    def close(self) -> None:
        """End the process; what it has not judged is left."""
        self._pool.shutdown(wait=True, cancel_futures=True)


def _begin_worker(parent: int) -> None:
    """Let this process end with its ``parent``, even one that is killed, and not by Ctrl-C.

    The parent ends the process after an interruption; a terminal interrupts both.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    lifetime.end_with_parent()
    if os.getppid() != parent:  # it has ended before
        os._exit(1)


_HERE: list[Here] = []
"""The states of partitions, in the process that judges."""


def _judge(batch: Batch, contract: Contract) -> Looked:
    if not _HERE:
        _HERE.append(Here())
    return _HERE[0].judge(batch, contract)


class Streaming(_Elsewhere):
    """Judges batches on Spark, whose session may still be starting."""

    def __init__(
        self,
        receive: Callable[[Looked], None],
        session: "Callable[[], SparkSession]",
        folder: Path,
    ) -> None:
        super().__init__(receive)
        self._session, self._folder = session, folder
        self._lock = threading.Lock()
        self._waiting: list[tuple[Batch, Contract]] | None = []
        """Batches that came before the stream; ``None`` from then on."""
        self._stream: Any = None
        self._starting = threading.Thread(target=self._start, name="watch", daemon=True)
        self._starting.start()

    def submit(self, batch: Batch, contract: Contract) -> None:
        """Add a batch to the stream."""
        with self._lock:
            if self._waiting is not None:
                self._waiting.append((batch, contract))
            else:
                self._stream.submit(batch, contract)

    def error(self) -> str | None:
        """Return why the stream has not started, or has ended."""
        return self._failure or (self._stream.error() if self._stream is not None else None)

    def close(self) -> None:
        """End the stream; what it has not judged is left."""
        self._starting.join()
        if self._stream is not None:
            self._stream.stop()

    def _start(self) -> None:
        try:
            session = self._session()  # first: two threads cannot import PySpark at once
            from checkers.live.on_spark import OnSpark

            stream = OnSpark(session, self._folder, self._received)
            with self._lock:
                for batch, contract in self._waiting or ():
                    stream.submit(batch, contract)
                self._waiting, self._stream = None, stream
            stream.start()
        except Exception as error:  # noqa: BLE001 - reported by look()
            self._fail(error)


@contextlib.asynccontextmanager
async def judging(
    watch: Watch, folder: Path, session: "Callable[[], SparkSession] | None"
) -> AsyncIterator[None]:
    """Judge a run in real time, on Spark or else in a process of its own, until the context ends.

    The judge begins with an empty batch, so that everything is started that it needs.
    """
    with contextlib.ExitStack() as stack:
        scratch = stack.enter_context(temporary.folder(folder, PREFIX)).resolve()
        judge: InProcess | Streaming
        if session is None:
            judge = InProcess(watch.receive)
        else:
            judge = Streaming(watch.receive, session, scratch)
        stack.callback(judge.close)
        nothing = scratch / "empty.jsonl"
        nothing.touch()
        judge.submit(batch_.empty(str(nothing), _NO_PARTITIONS), Contract())
        watch.use(judge)
        looking = asyncio.create_task(_look(watch), name="watch")
        try:
            yield
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)


async def _look(watch: Watch) -> None:
    while True:
        await asyncio.sleep(TICK_S)
        watch.look()
