from pathlib import Path

import pytest

from checkers import history_file, inline, table_builder
from checkers.tables import Tables
from harness.app import check, cli
from model.history import BadHistory

TORN = """\
{:index 0, :time 0, :type :invoke, :process 0, :f :assign, :value [1 2]}
{:index 1, :time 1, :type :ok, :process 0, :f :assign, :value [1 2]}
{:index 2, :time 2, :type :info, :process :nemesis, :f :start-partition, :value {"n1" #{"n2"}}}
{:index 3, :time 3, :type :invoke, :process 1, :f :txn, :value [[:send 1 10] [:send 2 20] [:poll]]}
{:index 4, :time 4, :type :ok, :process 1, :f :txn, :value [[:send 1 [0 10]] [:send 2 [0 20]]
                                                           [:poll {}]]}
{:index 5, :time 5, :type :invoke, :process 2, :f :send, :value [[:send 2 21]]}
{:index 6, :time 6, :type :ok, :process 2, :f :send, :value [[:send 2 [2 21]]]}
{:index 7, :time 7, :type :invoke, :process 0, :f :poll, :value [[:poll]]}
{:index 8, :time 8, :type :ok, :process 0, :f :poll, :value [[:poll {1 [[0 10]], 2 [[2 21]]}]]}
{:index 9, :time 9, :type :invoke, :process 2, :f :crash, :value nil}
{:index 10, :time 10, :type :info, :process 2, :f :crash, :value nil, :error [:crash "bye"]}
{:index 11, :time 11, :type :invoke, :process 0, :f :debug-topic-partitions, :value [1 2]}
{:index 12, :time 12, :type :ok, :process 0, :f :debug-topic-partitions, :value [{:a 1}]}
"""


def edn(folder: Path, text: str) -> Path:
    path = folder / "history.edn"
    path.write_text(text)
    return path


def read(folder: Path, text: str) -> Tables:
    return table_builder.of_history(history_file.read(edn(folder, text), lambda done: None))


def test_a_history_is_judged(tmp_path: Path) -> None:
    """A Jepsen history with integer keys is judged: sends, polls, transactions, assignments,
    crashes."""
    judged = check.examine(edn(tmp_path, TORN), inline=True)
    (found,) = judged.findings
    assert (found.anomaly, found.key, found.value, found.legal) == (
        "torn-transaction",
        "2",
        20,
        False,
    )
    assert judged.verdict.evidence["acked"] == 3


def test_a_folder_of_jepsens_store(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A folder of Jepsen's store is judged by its history, and is not changed."""
    path = edn(tmp_path, TORN)
    of_folder, of_file = (check.examine(given, inline=True) for given in (tmp_path, path))
    assert of_folder.findings == of_file.findings
    with pytest.raises(SystemExit) as ended:
        cli.main(["check", str(tmp_path), "--inline"])
    assert ended.value.code == 1
    assert "INVALID  torn-transaction 1" in capsys.readouterr().out
    assert [file.name for file in tmp_path.iterdir()] == ["history.edn"]


@pytest.mark.parametrize(("f", "legal"), [("subscribe", True), ("assign", False)])
def test_who_subscribes_may_be_moved(tmp_path: Path, f: str, legal: bool) -> None:
    """Without a plan, the history itself says whether readers subscribe, and so may be moved."""
    text = f"""\
{{:type :invoke, :process 0, :f :{f}, :value [1]}}
{{:type :ok, :process 0, :f :{f}, :value [1]}}
{{:type :invoke, :process 1, :f :send, :value [[:send 1 5] [:send 1 6]]}}
{{:type :ok, :process 1, :f :send, :value [[:send 1 [0 5]] [:send 1 [1 6]]]}}
{{:type :invoke, :process 0, :f :poll, :value [[:poll]]}}
{{:type :ok, :process 0, :f :poll, :value [[:poll {{1 [[0 5] [1 6]]}}]]}}
{{:type :invoke, :process 0, :f :poll, :value [[:poll]]}}
{{:type :ok, :process 0, :f :poll, :value [[:poll {{1 [[1 6]]}}]]}}
"""
    (found,) = check.examine(edn(tmp_path, text), inline=True).findings
    assert (found.anomaly, found.legal) == ("nonmonotonic-poll", legal)


def test_all_in_one_vector(tmp_path: Path) -> None:
    """A history that is one vector is read like one of single maps."""
    assert len(read(tmp_path, f"[{TORN}]").sends.op) == 3


def test_operations_of_one_kind_are_transactions_too(tmp_path: Path) -> None:
    """In a run with transactions, an operation of one kind is a transaction, too."""
    assert read(tmp_path, TORN).sends.txn.all()
    without = read(tmp_path, TORN.replace(":f :txn", ":f :send"))
    assert not without.sends.txn.any()


def test_without_indices_and_times(tmp_path: Path) -> None:
    """Without indices, the place of an event is its index."""
    text = (
        "{:type :invoke :process 0 :f :send :value [[:send 1 5]]}\n{:type :ok :process 0 :f :send"
    )
    tables = read(tmp_path, f"{text} :value [[:send 1 [nil 5]]]}}")
    assert tables.sends.op.tolist() == [1]
    assert tables.sends.offset.tolist() == [-1]


def test_a_torn_last_event_is_left_out(tmp_path: Path) -> None:
    """A torn last event is left out."""
    whole = TORN.splitlines()
    tables = read(tmp_path, "\n".join(whole[:6]) + "\n{:index 5, :type")
    assert tables.operations.op.tolist() == [1, 4]
    assert tables.torn == "the end of the file, from line 7 on, is torn and was left out"


def test_a_rebalance_gives_a_position_up(tmp_path: Path) -> None:
    """A reader may go back after a rebalance that a poll reports, and not otherwise."""
    text = """\
{:type :invoke, :process 0, :f :subscribe, :value [1]}
{:type :ok, :process 0, :f :subscribe, :value [1]}
{:type :invoke, :process 1, :f :send, :value [[:send 1 5] [:send 1 6]]}
{:type :ok, :process 1, :f :send, :value [[:send 1 [0 5]] [:send 1 [1 6]]]}
{:type :invoke, :process 0, :f :poll, :value [[:poll]]}
{:type :ok, :process 0, :f :poll, :value [[:poll {1 [[0 5] [1 6]]}]]}
{:type :invoke, :process 0, :f :poll, :value [[:poll]]}
{:type :ok, :process 0, :f :poll, :value [[:poll {1 [[1 6]]}]] REBALANCES}
"""
    log = ':rebalance-log [{:type :revoked :keys [1]} {:type :assigned :keys [1], :partitions "x"}]'
    for rebalances, anomalies in (("", ["nonmonotonic-poll"]), (log, [])):
        tables = read(tmp_path, text.replace("REBALANCES", rebalances))
        reports = inline.judge(tables, lambda done: None)
        assert [f.anomaly for f in reports["1"].found] == anomalies


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{:type :ok :process 0 :f :txn :value [[:send 1]]}", "['send', 1] is neither a send"),
        ("{:type :ok :process 0 :f :txn :value 7}", "event 0: 7 is not a list"),
        ("{:type :invoke :process -3 :f :poll}", "event 0 is of process -3"),
        ("{:type :invoke :process 2147483648 :f :poll}", "event 0 is of process 2147483648"),
        ("{:type :invoke :process true :f :poll}", "event 0 is of process True"),
        ("{:type :invoke :time 1.5 :process 0 :f :poll}", "not a whole number"),
        (
            "{:type :invoke :type :ok :process 0 :f :poll}",
            "line 1: a map has two entries with the key type",
        ),
        ("{:process 0}", "event 0 has no type or process"),
        ("{:type :ok :f :send}", "event 0 has no type or process"),
        ("{:type :invoke :process 0}", "event 0 has 'None' in :f, which is not a name"),
        (
            '{:type :invoke :process 0 :f :poll :value [[:poll {1 [[0 6]] "1" [[1 7]]}]]}',
            "a poll has two keys with the same name",
        ),
        (r'{:type :invoke :process 0 :f :send :value [[:send 1 "\ud800"]]}', "surrogate"),
        ("17", "'17' is not an operation"),
        (
            "{:type :ok :process 0 :f :send :value [[:send 1 :a]]}",
            '["send","1","a"] is not a valid value',
        ),
        ("{:type :ok :process 0 :f :poll}\n{:a 1]", "line 2: a ] has no opening bracket"),
        ("{:a", "line 1: the text ends inside a form"),
        ("", "has no events"),
    ],
)
def test_what_is_no_such_history(tmp_path: Path, text: str, message: str) -> None:
    """A text that is no such history is rejected with the reason."""
    with pytest.raises(BadHistory) as told:
        read(tmp_path, text)
    assert message in str(told.value)
