"""AlterConfigs (API 33), v0-v2, and IncrementalAlterConfigs (API 44), v0-v1: dynamic settings.

Any broker accepts them; other brokers read a change from ZooKeeper, shortly after the response. Of
a broker's settings, those that are read at each use can be changed, for one broker, or under the
empty name for all brokers. The key stores of single listeners can be changed as well, and their
files are then read again (KIP-226). Some settings are accepted without effect
(docs/broker-settings.md).
IncrementalAlterConfigs also changes the levels of this broker's loggers (KIP-412).

Refuses: unknown topics, brokers other than this one, invalid values.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from broker_impl.api import loggers, overrides
from broker_impl.api.configs import BROKER, BROKER_LOGGER, TOPIC
from broker_impl.api.overrides import Change
from broker_impl.api.registry import RequestContext, api
from broker_impl.config import SETTINGS, TOPIC_ONLY_SETTINGS, TOPIC_SETTINGS, Setting
from broker_impl.errors import ApiError, ConfigError, ErrorCode
from broker_impl.security import tls
from broker_impl.wire.messages import (
    alter_configs_response,
    incremental_alter_configs_response,
)
from broker_impl.wire.messages.alter_configs_request import AlterConfigsRequest
from broker_impl.wire.messages.alter_configs_response import AlterConfigsResponse
from broker_impl.wire.messages.incremental_alter_configs_request import (
    IncrementalAlterConfigsRequest,
)
from broker_impl.wire.messages.incremental_alter_configs_response import (
    IncrementalAlterConfigsResponse,
)

ALL_BROKERS = "<default>"
"""The name under which the settings of all brokers are stored."""

_OF_TOPICS: Mapping[str, Setting] = {**TOPIC_SETTINGS, **TOPIC_ONLY_SETTINGS}

Alter = Callable[[Mapping[str, str]], dict[str, str]]


@api(33, range(3))
async def alter_configs(
    context: RequestContext, request: AlterConfigsRequest
) -> AlterConfigsResponse:
    """Replace all settings of each resource by those that the request names."""
    answers = []
    names = Counter((each.resource_type, each.resource_name) for each in request.resources)
    for resource in request.resources:
        rows = [(row.name, row.value) for row in resource.configs]

        def alter(
            current: Mapping[str, str], rows: Sequence[tuple[str, str | None]] = rows
        ) -> dict[str, str]:
            return overrides.replaced(rows)

        error = await _alter(context, resource, alter, names, request.validate_only)
        answers.append(
            alter_configs_response.AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message or None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return AlterConfigsResponse(responses=answers)


@api(44, range(2))
async def incremental_alter_configs(
    context: RequestContext, request: IncrementalAlterConfigsRequest
) -> IncrementalAlterConfigsResponse:
    """Set or unset each named setting, or add items to or remove them from a list."""
    answers = []
    names = Counter((each.resource_type, each.resource_name) for each in request.resources)
    of_brokers, of_topics = _inherited(context, SETTINGS), _inherited(context, _OF_TOPICS)
    for resource in request.resources:
        rows = [Change(row.name, row.config_operation, row.value) for row in resource.configs]
        is_topic = resource.resource_type == TOPIC

        def alter(
            current: Mapping[str, str],
            rows: Sequence[Change] = rows,
            settings: Mapping[str, Setting] = _OF_TOPICS if is_topic else SETTINGS,
            inherited: Mapping[str, str] = of_topics if is_topic else of_brokers,
        ) -> dict[str, str]:
            return overrides.changed(current, rows, settings, inherited)

        if resource.resource_type == BROKER_LOGGER:
            error = _alter_levels(context, resource, rows, names, request.validate_only)
        else:
            error = await _alter(context, resource, alter, names, request.validate_only)
        answers.append(
            incremental_alter_configs_response.AlterConfigsResourceResponse(
                error_code=error.code,
                error_message=error.message or None,
                resource_type=resource.resource_type,
                resource_name=resource.resource_name,
            )
        )
    return IncrementalAlterConfigsResponse(responses=answers)


def _inherited(context: RequestContext, settings: Mapping[str, Setting]) -> dict[str, str]:
    config = context.services.config
    return {
        name: setting.format(getattr(config, setting.field, setting.default))
        for name, setting in settings.items()
    }


def _alter_levels(
    context: RequestContext,
    resource: Any,
    rows: Sequence[Change],
    names: Mapping[tuple[int, str], int],
    validate_only: bool,
) -> ApiError:
    """Change the levels of loggers and return the error; code NONE on success."""
    try:
        _refuse_repeated(resource, names)
        if resource.resource_name != str(context.services.config.broker_id):
            raise _another_broker(context)
        loggers.refuse(rows)
    except ApiError as error:
        return error
    if not validate_only:
        loggers.change(rows)
    return ApiError(ErrorCode.NONE, "")


def _refuse_repeated(resource: Any, names: Mapping[tuple[int, str], int]) -> None:
    if names[resource.resource_type, resource.resource_name] > 1:
        raise ApiError(ErrorCode.INVALID_REQUEST, "the request names a resource twice")


def _another_broker(context: RequestContext) -> ApiError:
    return ApiError(
        ErrorCode.INVALID_REQUEST, f"this is broker {context.services.config.broker_id}"
    )


async def _alter(
    context: RequestContext,
    resource: Any,
    alter: Alter,
    names: Mapping[tuple[int, str], int],
    validate_only: bool,
) -> ApiError:
    """Alter one resource and return its error; code NONE on success.

    names: how often the request names each resource.
    """
    services = context.services

    def obeyable(current: Mapping[str, str]) -> dict[str, str]:
        after = alter(current)
        try:
            if resource.resource_type == TOPIC:
                services.config.for_topic(after)
            else:
                is_common = resource.resource_name == ""
                default, own = (after, {}) if is_common else ({}, after)
                at_start = services.config.static or services.config
                changed = at_start.while_running(default, own)
                if changed.of_listeners != at_start.of_listeners:
                    tls.check_key_stores(changed)
        except ConfigError as error:
            raise overrides.refusal(error) from error
        return after

    try:
        _refuse_repeated(resource, names)
        entity = _entity(context, resource.resource_type, resource.resource_name)
        if validate_only:
            obeyable(await services.settings_of(entity))
        else:
            await services.alter_settings(entity, obeyable)
    except ApiError as error:
        return error
    return ApiError(ErrorCode.NONE, "")


def _entity(context: RequestContext, kind: int, name: str) -> str:
    """The name under which a resource's settings are stored; ApiError if it has none here."""
    if kind == TOPIC:
        if name not in context.services.view.topics:
            raise ApiError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"there is no topic {name}")
        return f"topics/{name}"
    if kind == BROKER:
        number = context.services.config.broker_id
        if name == "":
            return f"brokers/{ALL_BROKERS}"
        if name != str(number):
            raise _another_broker(context)
        return f"brokers/{name}"
    raise ApiError(
        ErrorCode.INVALID_REQUEST, f"resources of type {kind} have no settings in this broker"
    )
