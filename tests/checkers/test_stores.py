"""Questions to stores, and the sentences for their errors."""

import threading
from pathlib import Path
from typing import Any

import pytest

from checkers import engine, stores
from checkers.stores import Entry, Store, explained
from model.history import BadHistory


@pytest.fixture(scope="module")
def store(spark: Any) -> Store:
    return Store(spark)


def refusal(ask: Any, *arguments: Any) -> str:
    with pytest.raises(BadHistory) as error:
        ask(*arguments)
    text = str(error.value)
    assert "\n" not in text
    return text


@pytest.mark.spark
def test_names(tmp_path: Path, store: Store) -> None:
    """A URI stands for itself if it exists, and is a pattern otherwise."""
    for name in ("b/x.jsonl", "a/x.jsonl", "a/[1].jsonl", "a/1.jsonl"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_bytes(b"12345")
    home = tmp_path.as_uri()
    assert store.matching(f"{home}/a/[1].jsonl") == [Entry(f"{home}/a/[1].jsonl", 5, False)]
    found = store.matching(f"{home}/*/x.jsonl")
    assert [(each.uri.rpartition(str(tmp_path))[2], each.size) for each in found] == [
        ("/a/x.jsonl", 5),
        ("/b/x.jsonl", 5),
    ]
    assert [each.name for each in store.inside(home)] == ["a", "b"]
    assert all(each.is_folder for each in store.inside(home))


@pytest.mark.spark
def test_content(tmp_path: Path, store: Store) -> None:
    """A part of a file is read; a copy of a whole file comes without a file of checksums."""
    path = tmp_path / "x.bin"
    path.write_bytes(bytes(range(256)))
    assert store.read(path.as_uri(), 250, 100) == bytes(range(250, 256))
    (tmp_path / "there").mkdir()
    store.copy(path.as_uri(), tmp_path / "there" / "y.bin")
    assert (tmp_path / "there" / "y.bin").read_bytes() == path.read_bytes()
    assert [each.name for each in (tmp_path / "there").iterdir()] == ["y.bin"]


@pytest.mark.spark
@pytest.mark.parametrize(
    ("uri", "why"),
    [
        ("file:///nowhere/x", "file:///nowhere/x: it does not exist"),
        ("file:///nowhere/*", "file:///nowhere/*: no file or folder has such a name"),
        ("foo://host/x", "foo://host/x cannot be read: Hadoop has no file system for foo:"),
        ("s3a://bucket/x", "add --conf spark.jars.packages=org.apache.hadoop:hadoop-aws:3."),
        ("hdfs://127.0.0.1:1/x", "it cannot be reached (Connection refused)"),
    ],
)
def test_what_cannot_be_read(store: Store, uri: str, why: str) -> None:
    """Each reason is one clear sentence."""
    assert why in refusal(store.matching, uri)


@pytest.mark.spark
def test_settings_of_the_user_count(store: Store) -> None:
    """Only what Hadoop itself has set is replaced."""
    conf = store._conf
    assert conf.get("ipc.client.connect.max.retries") == "2"
    conf.set("fs.s3a.retry.limit", "9", "by a user")
    Store(_Session(conf, store))
    assert conf.get("fs.s3a.retry.limit") == "9"


class _Session:
    """A session with this configuration of Hadoop."""

    def __init__(self, conf: Any, store: Store) -> None:
        self.sparkContext = self
        self._jvm, self._jsc = store._java, self
        self.hadoopConfiguration = lambda: conf


@pytest.mark.spark
def test_a_store_that_does_not_answer(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The question is given up."""
    never = threading.Event()
    monkeypatch.setattr(stores, "ANSWER_S", 0.01)
    text = refusal(store._asked, "s3a://b/x", never.wait, 0.01)
    never.set()
    assert text == "s3a://b/x cannot be read: nothing answers within 0 s"


@pytest.mark.parametrize(
    ("causes", "why"),
    [
        (
            [("UnknownStoreException", "No bucket")],
            "there is no such bucket",
        ),
        ([("AccessDeniedException", "x"), ("S3Exception", "(403)")], "permission is denied"),
        ([("AccessControlException", "Permission denied: user=x")], "permission is denied"),
        ([("IOException", "x"), ("UnknownHostException", "h")], "its host is not known"),
        ([("FileNotFoundException", "File x does not exist")], "it does not exist"),
        ([("SomeException", ""), ("Other", "one\ntwo")], "one"),
        ([("SomeException", "")], "SomeException"),
    ],
)
def test_exceptions_of_stores(causes: list[tuple[str, str]], why: str) -> None:
    """Exceptions that need a store of their own to occur."""
    assert explained("s3a", causes, "3.5.0") == why


def test_secrets_are_hidden(monkeypatch: pytest.MonkeyPatch) -> None:
    """No message has a password, or the value of a secret setting."""
    conf = {"spark.hadoop.fs.s3a.secret.key": "Se/cret", "spark.hadoop.fs.s3a.endpoint": "http://e"}
    monkeypatch.setattr(engine, "_selected", [engine.Engine(None, conf)])
    text = "cannot use Se/cret at http://e of hdfs://me:pw@host/x"
    assert engine.redacted(text) == "cannot use (hidden) at http://e of hdfs://me:(hidden)@host/x"
    assert engine.redacted("abfss://c@a.net/x") == "abfss://c@a.net/x"
    with pytest.raises(engine.BadEngine) as error:
        engine.Engine.of(None, ["fs.s3a.secret.key=Se/cret"])
    assert str(error.value) == "--conf fs.s3a.secret.key: write spark.KEY=VALUE"
