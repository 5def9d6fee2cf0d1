"""One Spark session, whose files are all in one folder and are removed with it.

A local session listens on the loopback address only. On a cluster, the driver is this process, and
the code of the kernels travels to the workers.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError  # type: ignore[import-untyped]
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession, SQLContext

from checkers import engine as engine_
from checkers import shipping
from checkers.engine import Engine
from checkers.engine import NoSpark as NoSpark

MEMORY_MIN = 640 << 20
MEMORY_MAX = 5 << 28
"""Bounds of the driver's heap, bytes; it never has more than half of the machine's memory. Large
histories are in Python's memory, and in Spark's files."""
HISTORY_BYTES = 1 << 30
"""The size for which a session has memory that starts before there is a history."""
_SHUFFLE = "spark.sql.shuffle.partitions"
PATIENCE_S = 20.0
"""How many seconds a JVM has to exit by itself."""

_FOLDER = ".spark"
_JAVA = (
    Path(__file__).resolve().parent.parent / ".tools" / "jre" / "bin" / "java",
    Path("/usr/bin/java"),
)

_LOGGING = """\
status = off
appender.console.type = Console
appender.console.name = console
appender.console.target = SYSTEM_ERR
appender.console.layout.type = PatternLayout
appender.console.layout.pattern = %d{HH:mm:ss} %p %c{1}: %m%n%ex
rootLogger.level = error
rootLogger.appenderRef.console.ref = console
"""


def memory_for(history_bytes: int) -> int:
    """Return the heap size for a history of this size on disk: the typed tables are about a third
    of it, and Spark holds them about twice during a shuffle."""
    most = min(MEMORY_MAX, engine_.memory_bytes() // 2)
    return max(MEMORY_MIN, min(history_bytes * 2, most))


def start(
    folder: Path,
    *,
    memory_bytes: int | None = None,
    is_steady: bool = False,
    engine: Engine | None = None,
) -> SparkSession:
    """Start a session with its files in ``folder/.spark``; this blocks for some seconds.

    ``memory_bytes`` is the driver's heap, which ``is_steady`` allocates at once, so that the memory
    of a session for many hours does not grow. ``engine`` is by default the selected one
    (:func:`checkers.engine.selected`). The workers of a cluster must be able to read that folder by
    the same path.

    There is one session per process. The output of the JVM goes to ``.spark/log``. Raises
    :class:`NoSpark`.
    """
    engine = engine or engine_.selected()
    if engine.remote is not None:
        opened: SparkSession = _connect().start(folder, engine)
        return opened
    home = folder.resolve() / _FOLDER
    shutil.rmtree(home, ignore_errors=True)
    for name in ("local", "warehouse", "tmp"):
        (home / name).mkdir(parents=True)
    (home / "log4j2.properties").write_text(_LOGGING)
    _find_java()
    memory = (memory_bytes or memory_for(HISTORY_BYTES)) >> 20
    java = " ".join(
        (
            f"-Djava.io.tmpdir={home / 'tmp'}",
            f"-Dderby.system.home={home}",
            f"-Dlog4j2.configurationFile=file:{home / 'log4j2.properties'}",
            "-XX:+UseSerialGC -XX:-UsePerfData",
            "-XX:TieredStopAtLevel=1",  # it lives for seconds: compile fast, not well
        )
    )
    ours = {
        "spark.app.name": "faultline",
        "spark.driver.memory": f"{memory}m",
        "spark.driver.extraJavaOptions": java,
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "ERROR",
    }
    if engine.is_local:
        ours["spark.local.dir"] = str(home / "local")
        ours[_SHUFFLE] = str(engine_.cores())
    if engine.is_on_loopback:
        ours |= {"spark.driver.bindAddress": "127.0.0.1", "spark.driver.host": "127.0.0.1"}
    fixed = engine_.fixed_values() | {"spark.sql.warehouse.dir": str(home / "warehouse")}
    settings = engine.settings(ours, fixed)
    if is_steady and settings["spark.driver.memory"] == ours["spark.driver.memory"]:
        settings["spark.driver.extraJavaOptions"] += f" -Xms{memory}m -XX:+AlwaysPreTouch"
    conf = SparkConf(loadDefaults=False).setAll(list(settings.items()))
    public = SparkConf(loadDefaults=False)
    public.setAll([(k, v) for k, v in settings.items() if not engine_.is_secret(k)])
    gateway: Any = None
    try:
        with (home / "log").open("wb") as log:
            gateway = launch_gateway(  # type: ignore[no-untyped-call]
                # Its command line is visible to other users: secrets are sent when it runs.
                # A signal to this process group is meant for this process: the JVM is needed until
                # all is judged, and exits with this process, since its standard input ends then.
                public,
                {"stdout": log, "stderr": log, "start_new_session": True},
            )
        gateway.home = home
        context = SparkContext(conf=conf, gateway=gateway)
    except (PySparkException, Py4JError, OSError) as error:
        if gateway is not None:
            _end(gateway)
        last = (home / "log").read_text(errors="replace").strip().splitlines()[-1:]
        why = engine_.redacted(" ".join(last) or str(error))
        raise NoSpark(f"Spark did not start: {why}") from error
    if engine.is_local:
        context.pythonExec = sys.executable
    else:
        named = settings.get("spark.pyspark.python") or os.environ.get("PYSPARK_PYTHON")
        context.pythonExec = named or "python3"
        context.addPyFile(str(shipping.archive(home)))
    session = SparkSession(context)
    if _SHUFFLE not in settings:
        session.conf.set(_SHUFFLE, str(max(2, context.defaultParallelism)))
    return session


def is_alive(session: SparkSession) -> bool:
    """Return whether the session can still run jobs."""
    if is_remote(session):
        return bool(_connect().is_alive(session))
    context: Any = session.sparkContext
    if context._gateway.proc.poll() is not None:
        return False
    try:
        return not context._jsc.sc().isStopped()
    except Exception:  # noqa: BLE001 - a JVM on its way out fails in many ways
        return False


def cancel(session: SparkSession) -> None:
    """Cancel all jobs of a session, which fail then; a JVM that has died has none."""
    with contextlib.suppress(Exception):
        if is_remote(session):
            session.interruptAll()
        else:
            session.sparkContext.cancelAllJobs()


def stop(session: SparkSession) -> None:
    """End the session and its JVM, and remove its files, even if the JVM has already died.

    The server of Spark Connect goes on.
    """
    if is_remote(session):
        _connect().stop(session)
        return
    gateway: Any = session.sparkContext._gateway
    with warnings.catch_warnings(), contextlib.suppress(Exception):
        warnings.simplefilter("ignore", RuntimeWarning)  # raised for a JVM that has died
        session.stop()
    _end(gateway)
    shutil.rmtree(gateway.home, ignore_errors=True)


def is_remote(session: SparkSession) -> bool:
    """Return whether a server of Spark Connect runs the jobs of the session."""
    return not isinstance(session, SparkSession)


def _connect() -> Any:
    """Return the module for Spark Connect, whose imports take half a second."""
    from checkers import connect

    return connect


def _end(gateway: Any) -> None:
    """End a JVM, and clear what PySpark remembers of it, so that the next session does not use
    it."""
    with contextlib.suppress(Exception):
        gateway.shutdown()
    with contextlib.suppress(OSError):
        gateway.proc.stdin.close()  # it ends when its standard input does
    try:
        gateway.proc.wait(PATIENCE_S)
    except subprocess.TimeoutExpired:
        gateway.proc.kill()
        gateway.proc.wait()
    SparkContext._gateway = SparkContext._jvm = SparkContext._active_spark_context = None
    SparkSession._instantiatedSession = SparkSession._activeSession = None
    SQLContext._instantiatedContext = None


def _find_java() -> None:
    """Find the Java for Spark: JAVA_HOME, else ``java`` on PATH, else the project's own."""
    if home := os.environ.get("JAVA_HOME"):
        if not os.access(Path(home, "bin", "java"), os.X_OK):
            raise NoSpark(f"JAVA_HOME={home} has no bin/java: correct it, or judge with --inline")
    elif shutil.which("java") is None:
        for java in _JAVA:
            if java.is_file():
                os.environ["JAVA_HOME"] = str(java.resolve().parent.parent)
                return
        raise NoSpark("Java was not found: set JAVA_HOME, or judge with --inline")
