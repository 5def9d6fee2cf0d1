import contextlib
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession, SQLContext

from checkers import engine, session

GIB = 1 << 30


@pytest.mark.parametrize(
    ("history_bytes", "memory_bytes"),
    [
        (0, session.MEMORY_MIN),
        (GIB // 10, session.MEMORY_MIN),
        (GIB // 2, GIB),
        (100 * GIB, session.MEMORY_MAX),
    ],
)
def test_memory_follows_the_size_of_the_history(history_bytes: int, memory_bytes: int) -> None:
    """The heap follows the size of the history, within bounds.

    A small history needs a working JVM, and a huge one must leave memory for other processes.
    """
    assert session.memory_for(history_bytes) == memory_bytes


def test_without_java_there_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Java, one sentence says what to do."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(session, "_JAVA", ())
    with pytest.raises(session.NoSpark, match="set JAVA_HOME, or judge with --inline"):
        session.start(tmp_path)


def test_the_projects_own_java_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without JAVA_HOME and a ``java`` on PATH, Spark gets the project's own Java."""
    java = tmp_path / "jre" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.touch()
    monkeypatch.setenv("JAVA_HOME", "to be restored")
    monkeypatch.delenv("JAVA_HOME")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(session, "_JAVA", (tmp_path / "nothing", java))
    session._find_java()
    assert os.environ["JAVA_HOME"] == str(tmp_path / "jre")


def test_a_wrong_java_home_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A wrong JAVA_HOME is reported before anything is started."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "nowhere"))
    with pytest.raises(session.NoSpark, match="nowhere has no bin/java"):
        session.start(tmp_path)


def test_secrets_are_not_on_a_command_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM receives them once it runs, and no message has them."""
    launched: dict[str, str] = {}

    def launch(conf: Any, options: Any) -> None:
        launched.update(conf.getAll())
        raise OSError("no room for x/y+z")

    monkeypatch.setattr(session, "launch_gateway", launch)
    conf = {"spark.hadoop.fs.s3a.secret.key": "x/y+z", "spark.hadoop.fs.s3a.endpoint": "e"}
    chosen = engine.Engine(None, conf)
    monkeypatch.setattr(engine, "_selected", [chosen])
    with pytest.raises(session.NoSpark) as error:
        session.start(tmp_path)
    assert launched["spark.hadoop.fs.s3a.endpoint"] == "e"
    assert "x/y+z" not in (*launched.values(), str(error.value))
    assert str(error.value) == "Spark did not start: no room for (hidden)"


@pytest.mark.spark
def test_a_session_stays_in_its_folder(spark: Any) -> None:
    """A session has all its files in its folder, and listens on the loopback address only."""
    conf = spark.sparkContext.getConf()
    home = Path(conf.get("spark.local.dir")).parent
    assert home.name == ".spark"
    warehouse = conf.get("spark.sql.warehouse.dir").removeprefix("file:")  # set after its first use
    assert Path(warehouse).parent == home
    java = spark.sparkContext._jvm.java.lang.System
    assert java.getProperty("java.io.tmpdir") == str(home / "tmp")
    assert java.getProperty("derby.system.home") == str(home)
    assert conf.get("spark.driver.bindAddress") == "127.0.0.1"
    assert conf.get("spark.ui.enabled") == "false"
    heap = session.memory_for(session.HISTORY_BYTES)
    assert conf.get("spark.driver.memory") == f"{heap >> 20}m"
    assert heap > session.MEMORY_MIN
    output = home / "log"  # of the JVM; other tests may have made jobs fail before
    before = len(output.read_bytes())
    assert spark.range(5).count() == 5
    assert b"Exception" not in output.read_bytes()[before:]


@pytest.fixture
def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process without a session; that of other tests is restored afterwards."""
    for kind, names in [
        (SparkContext, ("_gateway", "_jvm", "_active_spark_context")),
        (SparkSession, ("_instantiatedSession", "_activeSession")),
        (SQLContext, ("_instantiatedContext",)),
    ]:
        for name in names:
            monkeypatch.setattr(kind, name, None)


@pytest.mark.spark
@pytest.mark.prove
@pytest.mark.usefixtures("alone")
def test_a_session_outlives_our_process_group_and_not_its_own_jvm(tmp_path: Path) -> None:
    """A session's JVM is outside this process group, and one that has died can be replaced.

    The session with a dead JVM is known to be dead and can be stopped, and another one can be
    started.
    """
    first = session.start(tmp_path)
    gateway: Any = first.sparkContext._gateway
    process = gateway.proc
    try:
        assert os.getpgid(process.pid) != os.getpgid(0)
        assert session.is_alive(first)
        process.kill()
        process.wait()
        assert not session.is_alive(first)
    finally:
        session.stop(first)
    assert not (tmp_path / ".spark").exists()
    second = session.start(tmp_path)
    try:
        assert second.range(5).count() == 5
    finally:
        session.stop(second)


CHILD = """
import sys
from pathlib import Path
from checkers import engine, session
started = session.start(Path(sys.argv[1]))
print(started.sparkContext._gateway.proc.pid, flush=True)
sys.stdin.read()
"""


@pytest.mark.spark
@pytest.mark.slow
def test_a_jvm_ends_with_a_process_that_is_killed(tmp_path: Path, repository: Path) -> None:
    """A JVM ends with its process, even if that is killed and cannot stop it."""
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, tmp_path],
        cwd=repository, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    ) as child:  # fmt: skip
        assert child.stdout is not None
        jvm = psutil.Process(int(child.stdout.readline()))
        child.kill()
    with contextlib.suppress(psutil.NoSuchProcess):
        jvm.wait(30)


@pytest.mark.spark
@pytest.mark.parametrize(("conf", "fixed"), [((), True), (("spark.driver.memory=512m",), False)])
def test_the_heap_of_a_steady_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, conf: tuple[str, ...], *, fixed: bool
) -> None:
    """It is allocated at once, unless the user has chosen another size."""
    given: dict[str, str] = {}

    def launch(conf: Any, *rest: Any) -> Any:
        given.update(conf.getAll())
        raise OSError("no JVM is needed")

    monkeypatch.setattr(session, "launch_gateway", launch)
    with pytest.raises(session.NoSpark):
        session.start(
            tmp_path,
            memory_bytes=session.MEMORY_MIN,
            is_steady=True,
            engine=engine.Engine.of(None, conf, None),
        )
    assert ("-Xms640m" in given["spark.driver.extraJavaOptions"]) is fixed
