"""A release either has what a workload needs, or is refused with the missing feature."""

import msgspec
import pytest

from model.plan import Plan
from workloads import (
    compacted,
    exactly_once,
    fencing,
    groups,
    idempotent,
    needs,
    offsets,
    recreated,
    send_poll,
    transactions,
)
from workloads.package import Workload

WORKLOADS = [
    module.WORKLOAD
    for module in (
        *(idempotent, send_poll, offsets, groups, transactions, exactly_once, fencing),
        *(compacted, recreated),
    )
]

RELEASES = {
    "0.10.2": {0: range(3), 11: range(2), 19: range(2), 20: range(1)},
    "0.11": {11: range(3), 19: range(3), 20: range(2), 21: range(1), 22: range(1), 24: range(1),
             28: range(1), 33: range(1)},
    "2.8": {11: range(8), 19: range(8), 20: range(7), 21: range(3), 22: range(5), 24: range(4),
            28: range(4), 33: range(3), 44: range(2), 47: range(1)},
    "4.1": {11: range(10), 19: range(2, 8), 20: range(1, 7), 21: range(3), 22: range(6),
            24: range(6), 28: range(6), 33: range(3), 44: range(2), 47: range(1), 68: range(2)},
}  # fmt: skip
"""The API versions that matter here, as these releases list them."""


def plan(workload: Workload, **options: object) -> Plan:
    """Return the workload's default plan with some other options."""
    return Plan(
        workload=workload.name,
        options={**workload.options, **options},
        producer=dict(workload.producer),
        consumer=dict(workload.consumer),
    )


def absent(workload: Workload, release: str, **options: object) -> list[str]:
    """Return the features that a release lacks for a workload."""
    wanted = workload.needs(plan(workload, **options))
    return [need.feature for need in needs.missing(wanted, RELEASES[release])]


@pytest.mark.parametrize("workload", WORKLOADS, ids=lambda workload: workload.name)
def test_recent_releases_run_everything(workload: Workload) -> None:
    """Every workload runs on Kafka 2.8 and 4.1 with its defaults, and none on 0.10.2."""
    assert absent(workload, "2.8") == []
    assert absent(workload, "4.1") == []
    assert "idempotent producers" in absent(workload, "0.10.2")


def test_plain_producers_run_everywhere() -> None:
    """Without idempotence, sending and polling needs nothing that 0.10.2 does not have."""
    plain = msgspec.structs.replace(plan(idempotent.WORKLOAD), producer={"acks": "all"})
    assert needs.missing(idempotent.WORKLOAD.needs(plain), RELEASES["0.10.2"]) == []


def test_features_of_0_11() -> None:
    """Kafka 0.11 has transactions, but no fencing of group members and no static members."""
    assert absent(transactions.WORKLOAD, "0.11") == []
    fenced = ["fenced group members in transactions"]
    assert absent(transactions.WORKLOAD, "0.11", subscribe=True) == fenced
    assert absent(exactly_once.WORKLOAD, "0.11") == fenced
    assert absent(fencing.WORKLOAD, "0.11") == []
    assert absent(groups.WORKLOAD, "0.11", static_p=0.5) == ["static members"]
    assert absent(groups.WORKLOAD, "0.11", static_p=0.0) == []


def test_options_decide() -> None:
    """A feature that the plan does not use is not needed."""
    assert absent(idempotent.WORKLOAD, "0.10.2", deletes_hz=1.0) == [
        "idempotent producers",
        "deletion of records",
    ]
    assert absent(offsets.WORKLOAD, "0.11", delete_p=0.1) == ["deletion of offsets"]
    assert absent(groups.WORKLOAD, "0.11", static_p=0.0, offset_deletes_hz=1.0) == [
        "deletion of offsets"
    ]
    assert absent(offsets.WORKLOAD, "0.10.2", txn_p=0.1) == [
        "idempotent producers",
        "transactions",
        "offsets in transactions",
    ]
    assert absent(compacted.WORKLOAD, "0.11", policies_s=[3.0]) == ["changes of single settings"]
    assert absent(compacted.WORKLOAD, "0.11", policies_s=[3.0], client="aiokafka") == []
    assert absent(compacted.WORKLOAD, "0.10.2", txn_p=0.0) == ["idempotent producers"]


def test_consumer_protocol() -> None:
    """The protocol of KIP-848 is needed only if the consumers are set to use it."""
    consumer = {"group.protocol": "consumer"}
    newer = msgspec.structs.replace(plan(groups.WORKLOAD), consumer=consumer)
    assert needs.missing(groups.WORKLOAD.needs(newer), RELEASES["2.8"]) == [needs.CONSUMER_PROTOCOL]
    assert needs.missing(groups.WORKLOAD.needs(newer), RELEASES["4.1"]) == []


def test_refusal() -> None:
    """The refusal is one sentence with the features, their proposals and the system."""
    wanted = transactions.WORKLOAD.needs(plan(transactions.WORKLOAD))
    assert needs.refusal("transactions", wanted, RELEASES["4.1"], "x") is None
    assert needs.refusal("transactions", wanted, RELEASES["0.10.2"], "Apache Kafka 0.10.2.2") == (
        "workload transactions needs idempotent producers (KIP-98) and transactions (KIP-98), "
        "which Apache Kafka 0.10.2.2 does not have"
    )


def test_features_are_named_once() -> None:
    """Each feature has its own name, and says which API version it stands for."""
    assert len({need.feature for need in needs.ALL}) == len(needs.ALL)
    assert str(needs.STATIC_MEMBERS) == "static members (KIP-345, JoinGroup v5)"
