"""Runs a test: starts a cluster, tests it, stops it, judges the recorded history and reports."""

import asyncio
import contextlib
import functools
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from checkers.expectations import Contract
from checkers.verdict import Verdict
from harness.app import (
    catalogue,
    command_line,
    files,
    node_signs,
    plan_resolution,
    report,
    run_start,
    runtime,
    signals,
    soak,
)
from harness.app import watch as watch_
from harness.app.check import examine
from harness.app.judgements import Judged
from harness.app.progress import Screen
from harness.app.refused import Refused
from harness.app.watch import Watch
from harness.engine.recorder import Observer, Recorder
from harness.engine.test_run import run_test
from harness.systems.catalogue import OURS
from model import cluster_facts
from model.capabilities.cluster import Cluster, HasData, HasFacts
from model.plan import Plan
from nemesis.runner import Nemesis

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Failed(Exception):
    """Faultline itself failed; the message says how, and what data is left."""

    def __init__(self, message: str, folder: Path | None = None) -> None:
        super().__init__(message)
        self.folder = folder
        """The folder with the data that is left; ``None`` if there is none."""


class Interrupted(Failed):
    """The user or a signal interrupted the run."""


class Meanwhile(NamedTuple):
    """What else happens during a test."""

    watch: Watch | None = None
    """Judges the history so far."""
    spark: "Spark | None" = None
    """Where that is done, if the target permits threads; otherwise in a process of its own."""
    reports: soak.Hourly | None = None
    observe: Observer | None = None
    """Is called with each event."""


class Done(NamedTuple):
    """The result of a run that reached its end."""

    judged: Judged
    folder: Path


def run(
    plan: Plan,
    results: Path,
    *,
    inline: bool,
    screen: Screen,
    spark: "Spark | None" = None,
    watch: bool = False,
    report_s: float | None = None,
) -> Done:
    """Run a resolved plan in a new folder under ``results`` and judge its history.

    The history is judged in this process, on ``spark``, or on a Spark session of its own. With
    ``watch`` it is also judged while it is recorded, and the run ends at the first illegal anomaly.
    Every ``report_s`` seconds of the run, if given, a report is written (:mod:`harness.app.soak`).
    The nodes' data is kept unless the verdict is valid. Raises :class:`Failed` if the run does not
    reach its verdict, and :class:`Interrupted` if it is interrupted. By then the cluster has been
    stopped, and the history so far is in the folder.
    """
    folder = new_folder(results, f"{plan.workload}-seed{plan.seed}", time.gmtime())
    document = msgspec.json.format(msgspec.json.encode(plan_resolution.masked(plan)), indent=2)
    files.replace(folder / "plan.json", document + b"\n")
    screen.say(f"{folder}")
    cluster: Cluster | None = None
    try:
        with contextlib.ExitStack() as stack:
            if inline:
                spark = None
            elif spark is None:
                spark = stack.enter_context(Spark(folder, is_steady=report_s is not None))
            start = spark.start if spark else lambda: None
            watching = None
            with _signals_restored():
                if watch:
                    watching = stack.enter_context(watch_.opened(folder, plan, screen.say))
                with contextlib.ExitStack() as recording:
                    reports = None
                    if report_s is not None:
                        reports = soak.Hourly(folder, every_s=report_s, say=screen.say)
                        recording.callback(reports.close)  # its last figures precede the judgement
                    meanwhile = Meanwhile(watching, spark, reports)
                    cluster = drive(plan, folder, screen, start, meanwhile)
            session = spark.session() if spark else None
            with screen.steps() as progress:
                judged = examine(folder, inline=inline, session=session, progress=progress)
        if watch_.is_unconfirmed(watching, judged.verdict):
            screen.say("the judgement of the whole history does not confirm what ended the run")
        _complete(folder, cluster, judged.verdict, screen)
    except (KeyboardInterrupt, asyncio.CancelledError) as error:
        raise Interrupted(_left(folder, cluster, error), folder) from error
    except Exception as error:
        raise Failed(_left(folder, cluster, error), folder) from error
    return Done(judged, folder)


def new_folder(results: Path, what: str, utc: time.struct_time) -> Path:
    """Create the folder ``<utc>-<what>``, with a number appended if the name is taken.

    Raises :class:`~harness.app.refused.Refused` if no folder can be created.
    """
    name = f"{time.strftime('%Y%m%dT%H%M%SZ', utc)}-{what}"
    for number in range(1, 1000):
        folder = results / (name if number == 1 else f"{name}-{number}")
        try:
            results.mkdir(parents=True, exist_ok=True)
            folder.mkdir(mode=0o700)
        except FileExistsError:
            if results.is_dir():
                continue
            raise Refused(f"--results {results}: this path is not a folder") from None
        except OSError as error:
            raise Refused(f"--results {results}: {error.strerror}") from error
        return folder
    raise Failed(f"{results} has no free name for another run of this second")


def drive(
    plan: Plan,
    folder: Path,
    screen: Screen,
    start: Callable[[], None] = lambda: None,
    meanwhile: "Meanwhile | None" = None,
) -> Cluster:
    """Run the test of a resolved plan in the target's own time and return the stopped cluster.

    ``start`` is called while the test runs, or after it if the target permits no threads.
    """
    target, make = catalogue.TARGETS[plan.target], catalogue.maker_of(plan)
    meanwhile = meanwhile or Meanwhile()
    if target.is_virtual:
        test = functools.partial(_test, plan, folder, screen, lambda: None, meanwhile)
        cluster = runtime.in_a_world(plan, folder, make, test, screen)
        start()
        return cluster
    test = functools.partial(_test, plan, folder, screen, start, meanwhile)
    return runtime.on_the_clock(plan, folder, make, test, screen)


async def _test(
    plan: Plan,
    folder: Path,
    screen: Screen,
    on_ready: Callable[[], None],
    meanwhile: "Meanwhile",
    make: runtime.Make,
    course: runtime.RunClock,
) -> Cluster:
    """Run the test from the first node's start to the last one's end; return the cluster."""
    workload = catalogue.WORKLOADS[plan.workload]
    is_simulated = catalogue.TARGETS[plan.target].is_virtual
    packages = [catalogue.NEMESES[name] for name in plan.nemesis]
    system = catalogue.system_of(plan)
    await system.prepare(plan, screen.say)
    await catalogue.TARGETS[plan.target].prepare(plan, system, screen.say)
    cluster = make(plan, folder, random.Random(f"{plan.seed}:cluster"))
    now_ns = functools.partial(_now_ns, course)
    watch, spark, reports, observe = meanwhile
    observers: list[Observer] = [course.tally]
    observers += [each for each in (reports, observe) if each is not None]
    try:
        async with contextlib.AsyncExitStack() as stack:
            if watch is not None and not is_simulated:
                session = None if spark is None else spark.session
                await stack.enter_async_context(watch_.judging(watch, folder, session))
            await _start(cluster, plan, screen)
            await _record_facts(cluster, folder, ())
            on_ready()
            if watch is not None:
                contract = Contract.of(plan, cluster=cluster_facts.read(folder))
                await watch.begin(contract, now_ns)
            course.begin(asyncio.get_running_loop().time)
            run_start.write(folder, course.wall_ns(), simulated=is_simulated)
            recorder = Recorder(
                folder / "history.jsonl",
                now_ns,
                observers,
                of_places=() if watch is None else [watch.observe],
            )
            stack.callback(recorder.close)
            ending = await run_test(
                plan,
                workload,
                cluster,
                Nemesis(cluster, packages, random.Random(f"{plan.seed}:nemesis")),
                recorder,
                course.tally,
                folder / "schedule.jsonl",
                None if watch is None else watch.early_end,
            )
        topics = {key.rpartition("-")[0] for key in course.tally.keys}
        await _record_facts(cluster, folder, sorted(topics))
        if not ending.recovered:
            screen.say("the cluster did not recover after all faults were healed")
    finally:
        await cluster.stop()
        if not is_simulated:  # a simulation reports how each of its nodes ends
            node_signs.record(folder)
    return cluster


def _now_ns(course: runtime.RunClock) -> int:
    return int(course.now_s() * 1e9)


async def _start(cluster: Cluster, plan: Plan, screen: Screen) -> None:
    """Start the cluster; report how long the programs of another project took."""
    clock = asyncio.get_running_loop().time
    began_s = clock()
    await cluster.start()
    if plan.system != OURS:
        screen.say(
            f"{plan.system}: {len(cluster.nodes)} nodes, ready after {clock() - began_s:.1f} s"
        )


async def _record_facts(cluster: Cluster, folder: Path, topics: Sequence[str]) -> None:
    """Write what the cluster reports about itself, which the contract takes into account."""
    facts = await cluster.facts(topics) if isinstance(cluster, HasFacts) else None
    if facts is not None:
        cluster_facts.write(folder, facts)


@contextlib.contextmanager
def _signals_restored() -> Iterator[None]:
    """Restore the signal handlers afterwards, because an event loop that ends resets them."""
    before = {number: signal.getsignal(number) for number in signals.ending()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _complete(folder: Path, cluster: Cluster | None, verdict: Verdict, screen: Screen) -> None:
    """Write the report and settle the nodes' data; on a full disk there is only the verdict."""
    written = files.attempted(
        lambda: report.render(folder), f"{folder / 'report.html'} cannot be written", folder
    )
    for why in (written, settled(folder, cluster, keep=verdict.valid is not True)):
        if why is not None:
            screen.say(why)


def settled(folder: Path, cluster: Cluster | None, *, keep: bool) -> str | None:
    """Keep or remove the nodes' data after the judgement; return why it failed, if it did."""
    what = "kept" if keep else "removed"
    return files.attempted(
        lambda: settle_data(cluster, keep=keep),
        f"{folder}: the nodes' data cannot be {what}",
        folder,
    )


def settle_data(cluster: Cluster | None, *, keep: bool) -> None:
    """Keep the nodes' data in the run's folder, or remove them, if the target has such data."""
    if isinstance(cluster, HasData):
        cluster.settle_data(keep=keep)


def _left(folder: Path, cluster: Cluster | None, error: BaseException) -> str:
    """Write ``crash.txt`` and a report; return how the run failed, and how to judge its history."""
    with contextlib.suppress(OSError):  # the disk may be full
        (folder / "crash.txt").write_text("".join(traceback.format_exception(error)))
        settle_data(cluster, keep=True)
    with contextlib.suppress(Exception):  # from the files that exist; must not hide the first error
        report.render(folder)
    if isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
        how = "interrupted"
    else:
        how = files.described(error, folder)
    history = folder / "history.jsonl"
    if not history.exists() or not history.stat().st_size:
        return f"{how} ({folder / 'crash.txt'})"
    again = command_line.command("check", folder)
    return f"{how} ({folder / 'crash.txt'}); to judge the history so far: {again}"


class Spark:
    """A Spark session that starts while the first workload runs, and stops with the block.

    A session that has died is replaced. A steady one has a heap of constant size.
    """

    def __init__(self, folder: Path, *, is_steady: bool = False) -> None:
        self._folder, self._is_steady = folder, is_steady
        self._session: Future[SparkSession] | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._session is not None and self._session.exception() is None:
            from checkers import session

            with contextlib.suppress(Exception):  # the session is no longer needed
                session.stop(self._session.result())

    def start(self) -> None:
        """Begin to start a session, unless one is alive or starting."""
        before = self._session
        if before is not None and not _has_ended(before):
            return
        self._session = Future()
        threading.Thread(
            target=self._start, args=(self._session, before), name="spark", daemon=True
        ).start()

    def session(self) -> "SparkSession":
        """Wait for the session and return it; raises the error that kept it from starting."""
        if self._session is None or _has_died(self._session):
            self.start()
        assert self._session is not None
        return self._session.result()

    def _start(self, future: "Future[SparkSession]", before: "Future[SparkSession] | None") -> None:
        try:
            from checkers import session

            if before is not None and before.exception() is None:
                session.stop(before.result())
            future.set_result(session.start(self._folder, is_steady=self._is_steady))
        except Exception as error:  # noqa: BLE001 - raised where the session is wanted
            future.set_exception(error)


def _has_ended(started: "Future[SparkSession]") -> bool:
    """Return whether the session failed to start or has died."""
    return started.done() and (started.exception() is not None or _has_died(started))


def _has_died(started: "Future[SparkSession]") -> bool:
    if not started.done() or started.exception() is not None:
        return False
    from checkers import session

    return not session.is_alive(started.result())
