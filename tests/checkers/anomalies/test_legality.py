"""What each contract permits."""

import pytest

from checkers.anomalies import is_legal
from checkers.expectations import Contract
from checkers.kernels.found import Found
from model.plan import Plan

ALL = (
    "lost-write",
    "duplicate",
    "phantom",
    "misrouted",
    "stuck",
    "nonmonotonic-send",
    "int-nonmonotonic-send",
    "realtime-order",
    "poll-skip",
    "int-poll-skip",
    "nonmonotonic-poll",
    "int-nonmonotonic-poll",
    "torn-transaction",
    "precommitted-read",
    "dirty-read",
    "zombie-write",
    "wr-cycle",
)

OF_GROUPS = {
    "commit-regression": ("", "nobody"),
    "lost-commit": ("",),
    "commit-ahead": ("", "nobody"),
    "resume-gap": ("",),
    "resume-overlap": ("",),
    "double-owner": ("", "commit"),
    "eos-mismatch": ("", "proven"),
    "hw-regress": ("",),
    "lso-regress": ("",),
    "log-start-regress": ("",),
    "acked-above-end": ("", "read"),
}
"""With their variants, except those that every contract permits."""
EVERY_OF_GROUPS = {f"{name} {v}".strip() for name, all_ in OF_GROUPS.items() for v in all_}


def allowed(contract: Contract) -> set[str]:
    found = [Found(anomaly=anomaly, key="x") for anomaly in ALL]
    found += [Found(anomaly="inconsistent-offsets", key="x", variant=v) for v in ("ack", "read")]
    found += [Found(anomaly="lost-write", key="x", variant=v) for v in ("read", "proven")]
    found += [
        Found(anomaly=anomaly, key="x", group="g", variant=variant)
        for anomaly, variants in OF_GROUPS.items()
        for variant in variants
    ]
    found += [Found(anomaly="G1a", key="x", variant=v) for v in ("send", "txn")]
    return {f"{f.anomaly} {f.variant}".strip() for f in found if is_legal(f, contract)}


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, set()),
        ({"producer.acks": "-1"}, set()),
        (
            {"producer.acks": "1"},
            {
                "lost-write",
                "lost-write proven",
                "torn-transaction",
                "acked-above-end",
                "duplicate",
                "inconsistent-offsets ack",
                "int-nonmonotonic-send",
            },
        ),
        (
            {"producer.acks": "1", "producer.max.in.flight.requests.per.connection": "1"},
            {
                "lost-write",
                "lost-write proven",
                "torn-transaction",
                "acked-above-end",
                "duplicate",
                "inconsistent-offsets ack",
            },
        ),
        # without followers, no leader can change: the one log must keep what it took
        (
            {"producer.acks": "1", "broker.default.replication.factor": "1"},
            {"duplicate", "int-nonmonotonic-send"},
        ),
        (
            {"producer.enable.idempotence": "false"},
            {"duplicate", "int-nonmonotonic-send"},
        ),
        (
            {"consumer.isolation.level": "read_uncommitted"},
            {
                "G1a txn",
                "lost-write proven",
                "precommitted-read",
                "dirty-read",
                "wr-cycle",
                "eos-mismatch proven",
            },
        ),
        (
            {"broker.unclean.leader.election.enable": "true"},
            {*ALL, *EVERY_OF_GROUPS, *(f"lost-write {v}" for v in ("read", "proven"))}.union(
                f"inconsistent-offsets {v}" for v in ("ack", "read")
            ).difference(("phantom", "misrouted", "stuck")),
        ),
    ],
)
def test_what_the_configuration_permits(settings: dict[str, str], expected: set[str]) -> None:
    """The strictest contract permits nothing, and each weaker setting only what follows from it."""
    assert allowed(Contract.of(None, settings)) == expected


def test_a_late_end_is_the_protocols_doing() -> None:
    """With ``transaction.version`` 1, a late end is permitted, and for transactions alone
    (KAFKA-17754)."""
    late = Contract.of(None, {"broker.transaction.version": "1"})
    assert allowed(late) == {
        "G1a txn",
        "lost-write proven",
        "precommitted-read",
        "dirty-read",
        "wr-cycle",
    }
    for variant, legal in (("txn", True), ("proven", True), ("read", False)):
        for anomaly in ("lost-write", "torn-transaction"):
            assert is_legal(Found(anomaly=anomaly, key="x", variant=variant), late) is legal
    assert Contract.of(None, {"broker.transaction.version": "2"}) == Contract()


def test_acks_0_promises_nothing_about_order_or_keeping() -> None:
    """With acks=0, records may be lost, duplicated and reordered."""
    permitted = allowed(Contract.of(None, {"producer.acks": "0"}))
    assert {"lost-write", "duplicate", "nonmonotonic-send", "realtime-order"} <= permitted
    never = {"phantom", "poll-skip", "lost-write read", "inconsistent-offsets read", "G1a send"}
    assert not permitted & never


@pytest.mark.parametrize(
    ("anomaly", "variant"),
    [
        ("commit-regression", "stale"),
        ("lost-commit", "stale"),
        ("commit-ahead", "alone"),
        ("hw-regress", "stale"),
        ("lso-regress", "stale"),
        ("log-start-regress", "stale"),
        ("acked-above-end", "stale"),
    ],
)
def test_a_finding_of_a_group_that_excuses_itself(anomaly: str, variant: str) -> None:
    """A finding of a former coordinator or leader, or of automatic commits, is permitted."""
    assert is_legal(
        Found(anomaly=anomaly, key="x", group="g", variant=variant, also=(15,)), Contract()
    )


@pytest.mark.parametrize(
    ("settings", "just_s"),
    [
        ({}, 15),
        ({"broker.zookeeper.session.timeout.ms": "2000"}, 15),  # the other one is the default
        (
            {
                "broker.zookeeper.session.timeout.ms": "2000",
                "broker.controller.socket.timeout.ms": "1500",
            },
            7,
        ),
    ],
)
def test_a_former_leader_hears_after_its_time_outs(settings: dict[str, str], just_s: int) -> None:
    """Without a fault, a former leader answers from memory for twice the sum of both timeouts."""
    contract = Contract.of(None, settings)
    for anomaly in ("commit-regression", "lost-commit", "hw-regress", "acked-above-end"):
        stale = [
            Found(anomaly=anomaly, key="x", variant="stale", also=(seconds,))
            for seconds in (just_s, just_s + 1)
        ]
        assert [is_legal(found, contract) for found in stale] == [True, False]


@pytest.mark.parametrize(
    ("anomaly", "setting", "just"),
    [
        ("stuck-lso", "producer.transaction.timeout.ms", 40),
        ("stuck-producer", "producer.transaction.timeout.ms", 40),
        ("stuck-group", "consumer.session.timeout.ms", 340),
        ("stuck-group", "consumer.max.poll.interval.ms", 85),
    ],
)
def test_a_standstill_is_one_when_it_outlasts_its_time_outs(
    anomaly: str, setting: str, just: int
) -> None:
    """A standstill is illegal half a minute after its timeouts; unclean elections do not excuse
    it."""
    for unclean in ("true", "false"):
        settings = {setting: "10000", "broker.unclean.leader.election.enable": unclean}
        contract = Contract.of(None, settings)
        assert is_legal(Found(anomaly=anomaly, key="x", also=(just,)), contract)
        assert not is_legal(Found(anomaly=anomaly, key="x", also=(just + 1,)), contract)


def test_what_no_contract_speaks_of_is_never_illegal() -> None:
    """Information is never illegal: late reads, unchecked records and writes that are not
    isolated."""
    for anomaly in ("unseen-delayed", "unseen-unchecked", "G0", "G1c"):
        assert is_legal(Found(anomaly=anomaly, key="x"), Contract())


@pytest.mark.parametrize(
    ("found", "legal"),
    [
        (Found(anomaly="lost-write", key="x", variant="deleted", also=(999,)), False),
        (Found(anomaly="lost-write", key="x", variant="deleted", also=(1000,)), True),
        (Found(anomaly="resurrected-key", key="x", also=(999,)), False),
        (Found(anomaly="resurrected-key", key="x", also=(1000,)), True),
        (Found(anomaly="stale-key", key="x"), False),
        (Found(anomaly="stale-key", key="x", variant="proven"), False),
    ],
)
def test_a_tombstone_stays_for_a_time(found: Found, legal: bool) -> None:
    """A tombstone stays for ``delete.retention.ms`` of the topic; another last record stays for
    ever."""
    assert is_legal(found, Contract.of(Plan(options={"delete_retention_ms": 1000}))) is legal


def test_readers_of_what_is_not_committed_may_find_it_gone() -> None:
    """A reader of uncommitted records may find them gone, and with acks=1 an older record of their
    key."""
    proven = Found(anomaly="stale-key", key="x", variant="proven")
    assert is_legal(proven, Contract(read_committed=False))
    assert not is_legal(Found(anomaly="stale-key", key="x"), Contract(read_committed=False))
    assert is_legal(Found(anomaly="stale-key", key="x"), Contract(acks="0"))
    assert is_legal(Found(anomaly="resurrected-key", key="x", also=(0,)), Contract(acks="1"))
