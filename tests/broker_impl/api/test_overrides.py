import pytest

from broker_impl.api import overrides
from broker_impl.api.overrides import APPEND, DELETE, SET, SUBTRACT, Change
from broker_impl.config import TOPIC_SETTINGS
from broker_impl.errors import ApiError, ErrorCode

CURRENT = {"retention.ms": "5", "cleanup.policy": "compact"}


def changed(*rows: Change, current: dict[str, str] = CURRENT) -> dict[str, str]:
    return overrides.changed(current, rows, TOPIC_SETTINGS, {"cleanup.policy": "delete"})


@pytest.mark.parametrize(
    ("row", "after"),
    [
        (Change("segment.ms", SET, "7"), CURRENT | {"segment.ms": "7"}),
        (Change("retention.ms", SET, "7"), CURRENT | {"retention.ms": "7"}),
        (Change("retention.ms", DELETE, None), {"cleanup.policy": "compact"}),
        (Change("segment.ms", DELETE, None), CURRENT),
        (
            Change("cleanup.policy", APPEND, "delete"),
            CURRENT | {"cleanup.policy": "compact,delete"},
        ),
        (Change("cleanup.policy", APPEND, "compact"), CURRENT),
        (Change("cleanup.policy", SUBTRACT, "compact"), CURRENT | {"cleanup.policy": ""}),
    ],
)
def test_one_setting_is_changed(row: Change, after: dict[str, str]) -> None:
    """KIP-339: a change of one setting leaves the other settings as they are."""
    assert changed(row) == after


def test_a_list_that_was_not_set_is_taken_from_the_broker() -> None:
    """KIP-339: APPEND to a setting without an override starts from the broker's value."""
    row = Change("cleanup.policy", APPEND, "compact")
    assert changed(row, current={}) == {"cleanup.policy": "delete,compact"}


@pytest.mark.parametrize(
    ("rows", "error"),
    [
        ([Change("retention.ms", SET, None)], ErrorCode.INVALID_REQUEST),
        ([Change("retention.ms", 9, "1")], ErrorCode.INVALID_REQUEST),
        ([Change("a", SET, "1"), Change("a", DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([Change("retention.ms", APPEND, "1")], ErrorCode.INVALID_REQUEST),
        ([Change("retention.msec", APPEND, "1")], ErrorCode.INVALID_CONFIG),
    ],
)
def test_what_cannot_be_is_refused(rows: list[Change], error: ErrorCode) -> None:
    """A request changes each setting once, SET needs a value, and only lists accept APPEND."""
    with pytest.raises(ApiError) as refused:
        changed(*rows)
    assert refused.value.code is error


def test_alter_configs_replaces_all() -> None:
    """KIP-133: AlterConfigs removes the overrides that the request does not name."""
    assert overrides.replaced([("segment.ms", "7")]) == {"segment.ms": "7"}
    with pytest.raises(ApiError):
        overrides.replaced([("segment.ms", None)])


def test_alter_configs_uses_the_last_value_of_a_name() -> None:
    """Kafka before 3.2 accepts a name that occurs twice: librdkafka's test 0092 sends one."""
    assert overrides.replaced([("segment.ms", "7"), ("segment.ms", "8")]) == {"segment.ms": "8"}
