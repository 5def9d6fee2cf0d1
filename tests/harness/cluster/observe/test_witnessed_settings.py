"""What is acknowledged of the settings of topics is compared with ZooKeeper."""

from types import SimpleNamespace
from typing import Any

import pytest

from broker_impl.wire.messages.alter_configs_request import (
    AlterableConfig as Replaced,
)
from broker_impl.wire.messages.alter_configs_request import (
    AlterConfigsRequest,
)
from broker_impl.wire.messages.alter_configs_request import (
    AlterConfigsResource as Whole,
)
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest, DeleteTopicState
from broker_impl.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from checkers.invariants.kept_settings import LATER, KeptSettings
from harness.cluster.observe.witnessed_settings import SettingsWitness

TOPIC, BROKER = 2, 4
SET, DELETE, APPEND = 0, 1, 2


def change(operation: int, *, kind: int = TOPIC, only_validates: bool = False) -> Any:
    rows = [AlterableConfig(name="a", config_operation=operation, value="1")]
    resource = AlterConfigsResource(resource_type=kind, resource_name="t", configs=rows)
    return IncrementalAlterConfigsRequest(resources=[resource], validate_only=only_validates)


def answer(*, error_code: int = 0, kind: int = TOPIC) -> Any:
    row = SimpleNamespace(error_code=error_code, resource_type=kind, resource_name="t")
    return SimpleNamespace(responses=[row])


def lost(kept: KeptSettings, found: dict[str, str]) -> list[str]:
    return [why for _ in range(LATER) for _, why in kept.lost({"t": dict(found)})]


def answered(request: Any, given: Any) -> KeptSettings:
    kept = KeptSettings()
    on_answer = SettingsWitness(kept)(request)
    if on_answer is not None:
        on_answer(given)
    return kept


def test_what_was_set_is_judged() -> None:
    """Or removed."""
    assert lost(answered(change(SET), answer()), {}) == ["a was set to 1, and is None"]
    assert lost(answered(change(DELETE), answer()), {"a": "1"}) != []


@pytest.mark.parametrize(
    ("request_", "given"),
    [
        (change(SET), answer(error_code=7)),
        (change(APPEND), answer()),
        (change(SET, only_validates=True), answer()),
        (change(SET, kind=BROKER), answer(kind=BROKER)),
        (DeleteTopicsRequest(topic_names=["t"]), None),
    ],
)
def test_other_changes_are_not_judged(request_: Any, given: Any) -> None:
    """Lists depend on what they were, and the settings of brokers are not those of topics."""
    assert lost(answered(request_, given), {}) == []


@pytest.mark.parametrize(
    "later",
    [
        AlterConfigsRequest(
            resources=[Whole(resource_type=TOPIC, resource_name="t", configs=[Replaced(name="b")])]
        ),
        DeleteTopicsRequest(topics=[DeleteTopicState(name="t")]),
        DeleteTopicsRequest(topics=[DeleteTopicState(name=None)]),
    ],
)
def test_a_later_request_ends_what_is_known(later: Any) -> None:
    """It replaces all settings, or deletes the topic."""
    kept = answered(change(SET), answer())
    SettingsWitness(kept)(later)
    assert lost(kept, {}) == []
