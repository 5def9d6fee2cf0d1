"""Which Spark judges, and where its settings come from."""

from pathlib import Path

import pytest

from checkers import engine
from checkers.engine import BadEngine, Engine


@pytest.mark.parametrize(
    ("master", "is_local", "is_on_loopback"),
    [
        (None, True, True),
        ("local", True, True),
        ("local[4]", True, True),
        ("spark://127.0.0.1:7077", False, True),
        ("spark://localhost:7077", False, True),
        ("spark://127.0.0.1:7077,127.0.0.1:7078", False, True),
        ("spark://spark.example.org:7077", False, False),
        ("k8s://https://10.0.0.1:443", False, False),
        ("yarn", False, False),
    ],
)
def test_where_the_executors_are(master: str | None, is_local: bool, is_on_loopback: bool) -> None:
    """The driver listens on the loopback address where no other machine takes part."""
    found = Engine.of(master, ())
    assert (found.is_local, found.is_on_loopback) == (is_local, is_on_loopback)


@pytest.mark.parametrize(
    ("master", "conf", "why"),
    [
        ("http://host", (), "must be local"),
        ("spark://", (), "must be local"),
        ("locally", (), "must be local"),
        ("spark://[x", (), "must be local"),
        (None, ("executor.memory=1g",), "write spark.KEY=VALUE"),
        (None, ("spark.executor.memory",), "write spark.KEY=VALUE"),
        (None, ("spark.a=1", "spark.a=2"), "spark.a: this setting is given more than once"),
        (None, ("spark.master=yarn",), "chosen by --spark-master"),
        (None, ("spark.sql.adaptive.enabled=true",), "split on purpose"),
    ],
)
def test_what_is_no_engine(master: str | None, conf: tuple[str, ...], why: str) -> None:
    """One sentence says what is wrong."""
    with pytest.raises(BadEngine, match=why) as refused:
        Engine.of(master, conf)
    assert "\n" not in str(refused.value)


def test_settings_are_the_users_before_sparks_file_before_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Settings on which a verdict depends are always those of Faultline."""
    (tmp_path / "spark-defaults.conf").write_text(
        "# a comment\n\nspark.executor.memory  3g\nspark.a=file\nspark.b   file\n"
        "spark.sql.adaptive.enabled true\nspark.alone\nother.name 4\n"
        "spark.c: file\nspark.java  -Dx=1 -Dy=2\n"
    )
    monkeypatch.setenv("SPARK_CONF_DIR", str(tmp_path))
    found = Engine.of("yarn", ["spark.b=user=x"])
    fixed = {"spark.sql.adaptive.enabled": "false"}
    assert found.settings({"spark.a": "ours", "spark.b": "ours", "spark.c": "ours"}, fixed) == {
        "spark.a": "file",
        "spark.b": "user=x",
        "spark.c": "file",
        "spark.java": "-Dx=1 -Dy=2",
        "spark.executor.memory": "3g",
        "spark.sql.adaptive.enabled": "false",
        "spark.master": "yarn",
    }


def test_without_a_master_all_cores_of_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without files of Spark there are only Faultline's settings."""
    monkeypatch.delenv("SPARK_CONF_DIR", raising=False)
    monkeypatch.delenv("SPARK_HOME", raising=False)
    monkeypatch.setattr(engine, "cores", lambda: 7)
    assert Engine().settings({}, {}) == {"spark.master": "local[7]"}
    monkeypatch.setenv("SPARK_HOME", "/nowhere")
    assert Engine().settings({}, {}) == {"spark.master": "local[7]"}


def test_the_machine() -> None:
    """A session knows how many cores and how much memory it may use."""
    assert engine.cores() >= 1
    assert engine.memory_bytes() > 64 << 20


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("sc://spark:15002", ("spark", 15002)),
        ("sc://spark", ("spark", 15002)),
        ("sc://[::1]:9/;token=x;use_ssl=true", ("::1", 9)),
    ],
)
def test_the_address_of_a_connect_server(url: str, expected: tuple[str, int]) -> None:
    """A URL of Spark Connect may lack the port and may have parameters."""
    assert Engine.of(None, (), url).remote == url
    assert engine.remote_address(url) == expected


@pytest.mark.parametrize("url", ["http://spark:1", "sc://", "sc://spark:x", "spark", ""])
def test_what_is_no_address_of_a_connect_server(url: str) -> None:
    """The sentence names the form."""
    with pytest.raises(BadEngine, match="must be sc://HOST:PORT"):
        Engine.of(None, (), url)


def test_one_engine_at_a_time() -> None:
    """A master and a server together are refused."""
    with pytest.raises(BadEngine, match="name two engines"):
        Engine.of("local[2]", (), "sc://spark")


def test_a_running_session_has_a_part_of_the_fixed_values() -> None:
    """Only settings of SQL belong to a session of Spark Connect."""
    of_session = engine.fixed_values(of_session=True)
    assert of_session["spark.sql.session.timeZone"] == "UTC"
    assert of_session.items() < engine.fixed_values().items()
    assert all(name.startswith("spark.sql.") for name in of_session)
    assert engine.fixed_values().keys() == engine.FIXED.keys() - {
        "spark.master",
        "spark.sql.warehouse.dir",
    }
