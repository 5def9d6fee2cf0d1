import msgspec
import pytest

from checkers.expectations import BadSetting, Contract
from model.plan import Plan, ScheduledFault


def test_a_plan_and_settings_in_its_place() -> None:
    """Settings of the command line replace those of the plan."""
    plan = Plan(
        producer={"acks": "1", "enable.idempotence": "false"}, options={"replication_factor": 3}
    )
    assert Contract.of(plan).acks == "1"
    assert not Contract.of(plan).idempotent
    settings = {"producer.acks": "all", "producer.enable.idempotence": "true"}
    assert Contract.of(plan, settings) == Contract()


def test_a_plan_may_promise_more_than_its_settings() -> None:
    """What a plan expects replaces the settings of its brokers."""
    unclean = "broker.unclean.leader.election.enable"
    plan = Plan(
        broker={"unclean.leader.election.enable": "true"}, options={"replication_factor": 3}
    )
    assert Contract.of(plan).unclean_elections
    strict = msgspec.structs.replace(plan, expect={unclean: "false"})
    assert Contract.of(strict) == Contract()
    assert Contract.of(strict, {unclean: "true"}).unclean_elections


def test_a_record_is_lost_with_its_only_replica_if_that_moves() -> None:
    """With acks=1, the new replica need not have what the former one has acknowledged."""
    kill, move = (
        ScheduledFault(id=1, at_s=1.0, duration_s=1.0, fault=name) for name in ("kill", "reassign")
    )
    plan = Plan(producer={"acks": "1"}, options={"replication_factor": 1}, schedule=(kill,))
    assert not Contract.of(plan).loses
    moving = msgspec.structs.replace(plan, schedule=(kill, move))
    assert Contract.of(moving).loses
    assert not Contract.of(moving, {"producer.acks": "all"}).loses


def test_the_latest_name_of_acks_counts() -> None:
    """librdkafka has two names for acks: what is set later replaces both."""
    plan = Plan(producer={"acks": "all"})
    assert Contract.of(plan, {"producer.request.required.acks": "1"}).acks == "1"
    other = Plan(producer={"request.required.acks": "1"})
    assert Contract.of(other).acks == "1"
    assert Contract.of(other, {"producer.acks": "all"}).acks == "all"


@pytest.mark.parametrize(
    ("value", "begins_at_end"), [("latest", True), ("end", True), ("earliest", False)]
)
def test_where_members_begin(value: str, begins_at_end: bool) -> None:
    """The names of Java's clients and of librdkafka are known."""
    contract = Contract.of(None, {"consumer.auto.offset.reset": value})
    assert contract.begins_at_end is begins_at_end


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (
            {"acks": "1"},
            "--set acks: the name of a setting must be broker.KEY, producer.KEY or consumer.KEY",
        ),
        (
            {"producer.ack": "1"},
            "producer.ack does not affect the verdict; only these settings do: broker.",
        ),
        ({"producer.acks": "2"}, "--set producer.acks=2: acks must be all, 1 or 0"),
        ({"producer.enable.idempotence": "yes"}, "true or false"),
        ({"consumer.isolation.level": "read-committed"}, "one of read_committed, read_uncommitted"),
        ({"consumer.auto.offset.reset": "lastest"}, "one of earliest, "),
        ({"broker.default.replication.factor": "three"}, "a whole number"),
    ],
)
def test_a_bad_setting_is_refused(settings: dict[str, str], message: str) -> None:
    """A bad setting is rejected, and the message says what would be valid."""
    with pytest.raises(BadSetting) as told:
        Contract.of(None, settings)
    assert message in str(told.value)
