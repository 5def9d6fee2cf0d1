"""A run: a cluster is started, tested and ended, and what was recorded is judged and told."""

import asyncio
import contextlib
import random
import signal
import threading
import time
import traceback
from collections.abc import Callable
from concurrent.futures import Future
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from harness.app import catalogue, report, request
from harness.app.check import Judged, examine
from harness.app.screen import Screen
from harness.engine.phases import carry_out
from harness.engine.recorder import Recorder
from harness.engine.tally import Tally
from model.plan import Plan
from model.roles import Cluster, HasData
from nemesis.runner import Nemesis

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class Failed(Exception):
    """Faultline itself failed; the message says how, and what is left."""


class Done(NamedTuple):
    """A run that came to its end."""

    judged: Judged
    folder: Path


def run(plan: Plan, results: Path, *, inline: bool, screen: Screen) -> Done:
    """Carry a resolved plan out in a new folder under ``results``, and judge it.

    The nodes' data is kept unless the verdict is valid. Raises :class:`Failed` when the run does
    not come to its end, an interruption included; by then the cluster has been stopped and the
    history so far is in the folder.
    """
    folder = new_folder(results, plan, time.gmtime())
    document = msgspec.json.format(msgspec.json.encode(request.masked(plan)), indent=2)
    (folder / "plan.json").write_bytes(document + b"\n")
    screen.say(f"{folder}")
    try:
        with contextlib.ExitStack() as stack:
            spark = None if inline else stack.enter_context(_Spark(folder))
            cluster = asyncio.run(
                _test(plan, folder, screen, on_ready=spark.start if spark else lambda: None)
            )
            session = spark.session() if spark else None
            with screen.steps() as progress:
                judged = examine(folder, inline=inline, session=session, progress=progress)
        report.render(folder)
        if judged.verdict.valid is True and isinstance(cluster, HasData):
            cluster.drop_data()
    except (Exception, KeyboardInterrupt, asyncio.CancelledError) as error:
        raise Failed(_left(folder, error)) from error
    return Done(judged, folder)


def new_folder(results: Path, plan: Plan, utc: time.struct_time) -> Path:
    """``<utc>-<workload>-seed<n>``; with a number behind it when two begin in one second.

    Raises :class:`~harness.app.request.Refused` where no folder can be made.
    """
    name = f"{time.strftime('%Y%m%dT%H%M%SZ', utc)}-{plan.workload}-seed{plan.seed}"
    for number in range(1, 1000):
        folder = results / (name if number == 1 else f"{name}-{number}")
        try:
            results.mkdir(parents=True, exist_ok=True)
            folder.mkdir()
        except FileExistsError:
            if results.is_dir():
                continue
            raise request.Refused(f"--results {results}: is no folder") from None
        except OSError as error:
            raise request.Refused(f"--results {results}: {error.strerror}") from error
        return folder
    raise Failed(f"{results} has a thousand runs of this second")


async def _test(plan: Plan, folder: Path, screen: Screen, on_ready: Callable[[], None]) -> Cluster:
    """From the first node's start to the last one's end; the cluster, stopped."""
    _cancel_on_signals()
    target = catalogue.TARGETS[plan.target]
    workload = catalogue.WORKLOADS[plan.workload]
    packages = [catalogue.NEMESES[name] for name in plan.nemesis]
    cluster = target.make(plan, folder, random.Random(f"{plan.seed}:cluster"))
    tally = Tally()
    loop = asyncio.get_running_loop()
    began_s = loop.time()
    following = asyncio.create_task(
        screen.follow(tally, lambda: loop.time() - began_s, plan.time_limit_s)
    )
    try:
        await cluster.start()
        on_ready()
        began_s = loop.time()
        recorder = Recorder(
            folder / "history.jsonl", lambda: int((loop.time() - began_s) * 1e9), [tally]
        )
        try:
            ending = await carry_out(
                plan,
                workload,
                cluster,
                Nemesis(cluster, packages, random.Random(f"{plan.seed}:nemesis")),
                recorder,
                tally,
                folder / "schedule.jsonl",
            )
        finally:
            recorder.close()
        if not ending.recovered:
            screen.say("the cluster did not recover after all faults were healed")
    finally:
        following.cancel()
        await cluster.stop()
    return cluster


def _cancel_on_signals() -> None:
    """SIGINT and SIGTERM end the run in good order; a second one is not waited for."""
    loop = asyncio.get_running_loop()
    task = asyncio.current_task()
    assert task is not None, "called from a task"

    def cancel() -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.remove_signal_handler(number)
        task.cancel()

    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, cancel)


def _left(folder: Path, error: BaseException) -> str:
    """How it failed, and what can be done with what there is."""
    (folder / "crash.txt").write_text("".join(traceback.format_exception(error)))
    with contextlib.suppress(Exception):  # whatever there is, on a page; not worth another failure
        report.render(folder)
    if isinstance(error, KeyboardInterrupt | asyncio.CancelledError):
        how = "interrupted"
    else:
        how = f"{type(error).__name__}: {error}".replace("\n", " ").rstrip(": ")
    history = folder / "history.jsonl"
    if not history.exists() or not history.stat().st_size:
        return f"{how} ({folder / 'crash.txt'})"
    return f"{how} ({folder / 'crash.txt'}); the history so far: faultline check {folder}"


class _Spark:
    """A session that starts while the workload runs, and is stopped with the block."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._session: Future[SparkSession] = Future()
        self._started = False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._started and self._session.exception() is None:
            from checkers import session

            session.stop(self._session.result())

    def start(self) -> None:
        self._started = True
        threading.Thread(target=self._start, name="spark", daemon=True).start()

    def session(self) -> "SparkSession":
        """The session, as soon as it is there; raises what kept it from starting."""
        return self._session.result()

    def _start(self) -> None:
        try:
            from checkers import session

            self._session.set_result(session.start(self._folder))
        except Exception as error:  # noqa: BLE001 - raised where the session is wanted
            self._session.set_exception(error)
