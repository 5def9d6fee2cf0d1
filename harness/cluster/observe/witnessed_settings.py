"""Passes changes of topics' settings to `checkers.invariants.kept_settings`."""

from collections.abc import Callable
from typing import Any, Final

from broker_impl.wire.messages.alter_configs_request import AlterConfigsRequest
from broker_impl.wire.messages.delete_topics_request import DeleteTopicsRequest
from broker_impl.wire.messages.incremental_alter_configs_request import (
    IncrementalAlterConfigsRequest,
)
from checkers.invariants.kept_settings import Asked, KeptSettings

OnAnswer = Callable[[Any], None]
_TOPIC: Final = 2
"""The type of resource."""
SET, DELETE = 0, 1
"""Operations of IncrementalAlterConfigs; the others change lists."""


class SettingsWitness:
    """Sees changes of settings, and deletions of topics, by one life of a broker.

    Args:
        kept: what all brokers have acknowledged.
    """

    def __init__(self, kept: KeptSettings) -> None:
        self._kept = kept

    def __call__(self, request: Any) -> OnAnswer | None:
        """See a request; return the function that sees its answer, if it is checked."""
        match request:
            case DeleteTopicsRequest():
                for topic in (*request.topic_names, *(each.name for each in request.topics)):
                    self._kept.deletes(topic)
            case AlterConfigsRequest() | IncrementalAlterConfigsRequest() if (
                not request.validate_only
            ):
                return self._altered(request)
            case _:
                pass
        return None

    def _altered(self, request: AlterConfigsRequest | IncrementalAlterConfigsRequest) -> OnAnswer:
        numbers = {
            row.resource_name: self._kept.asks(_asked(request, row))
            for row in request.resources
            if row.resource_type == _TOPIC
        }
        lists = {row.resource_name for row in request.resources if _changes_a_list(request, row)}

        def on_answer(answer: Any) -> None:
            for given in answer.responses:
                if given.resource_type != _TOPIC:
                    continue
                number = numbers.pop(given.resource_name, None)
                if number is not None:
                    is_done = not given.error_code and given.resource_name not in lists
                    self._kept.answered(number, is_done=is_done)

        return on_answer


def _asked(request: Any, resource: Any) -> Asked:
    if isinstance(request, AlterConfigsRequest):
        return Asked(resource.resource_name, None)
    return Asked(
        resource.resource_name,
        {row.name: row.value if row.config_operation == SET else None for row in resource.configs},
    )


def _changes_a_list(request: Any, resource: Any) -> bool:
    """Return whether the outcome depends on what is there: items are added or removed."""
    return isinstance(request, IncrementalAlterConfigsRequest) and any(
        row.config_operation not in (SET, DELETE) for row in resource.configs
    )
