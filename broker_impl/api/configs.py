"""DescribeConfigs (API 32), v0-v4: every setting with its default, source and documentation.

Kafka settings on which this broker does not act are described with Kafka's defaults. The settings
of a resource of type BROKER_LOGGER are the levels of this broker's loggers (KIP-412).
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from broker_impl.api import loggers
from broker_impl.api.registry import RequestContext, api
from broker_impl.config import (
    DYNAMIC_OF_A_LISTENER,
    SETTINGS,
    BrokerConfig,
    Setting,
    Source,
    Sourced,
    is_known,
)
from broker_impl.errors import ApiError, ErrorCode
from broker_impl.kafka_defaults import DEFAULTS
from broker_impl.kafka_settings import CHANGEABLE, LISTENER_PREFIX, Inactive, Kind, inactive
from broker_impl.wire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from broker_impl.wire.messages.describe_configs_response import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
    DescribeConfigsSynonym,
)

TOPIC, BROKER, BROKER_LOGGER = 2, 4, 8
_WITHOUT_DEFAULT = frozenset(
    {"log.flush.interval.ms", "log.retention.ms", "log.roll.jitter.ms", "log.roll.ms"}
)
"""Settings for which Kafka uses a setting with a coarser unit, and shows no default."""
Layers = tuple[tuple[Mapping[str, str | None], Source], ...]
"""Values of settings by name, and where they come from; the first one that has a setting counts."""
_SOURCE_OF_LEVELS = 6
"""DYNAMIC_BROKER_LOGGER_CONFIG: the source of a logger's level."""


@api(32, range(5))
async def describe_configs(
    context: RequestContext, request: DescribeConfigsRequest
) -> DescribeConfigsResponse:
    """Return the settings of each resource, all or those that the request names.

    What is asked twice is found out once: a broker has hundreds of settings.
    """
    found: dict[tuple[int, str, tuple[str, ...] | None], DescribeConfigsResult] = {}
    results = []
    for resource in request.resources:
        keys = resource.configuration_keys
        asked = (
            resource.resource_type,
            resource.resource_name,
            None if keys is None else tuple(keys),
        )
        if asked not in found:
            found[asked] = await _resource(context, request, resource)
        results.append(found[asked])
    return DescribeConfigsResponse(results=results)


async def _resource(
    context: RequestContext, request: DescribeConfigsRequest, resource: DescribeConfigsResource
) -> DescribeConfigsResult:
    result = DescribeConfigsResult(
        resource_type=resource.resource_type, resource_name=resource.resource_name
    )
    config = context.services.config
    if resource.resource_type == TOPIC:
        if resource.resource_name not in context.services.view.topics:
            result.error_code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            return result
        try:
            overrides = await context.services.topic_settings(resource.resource_name)
        except ApiError as error:
            result.error_code, result.error_message = error.code, error.message
            return result
        rows = [_row(*setting) for setting in config.topic_settings(overrides)]
    elif resource.resource_type == BROKER:
        if resource.resource_name not in ("", str(config.broker_id)):
            return _of_another_broker(result, config)
        rows = _broker_rows(config)
        if not resource.resource_name:
            rows = list(_rows_of_all_brokers(rows))
    elif resource.resource_type == BROKER_LOGGER:
        if resource.resource_name != str(config.broker_id):
            return _of_another_broker(result, config)
        rows = [_level_row(*level) for level in loggers.levels().items()]
    else:
        result.error_code = ErrorCode.INVALID_REQUEST
        result.error_message = (
            f"resources of type {resource.resource_type} have no settings in this broker"
        )
        return result
    wanted = resource.configuration_keys
    result.configs = [row for row in rows if not wanted or row.name in wanted]
    for row in result.configs:
        if not request.include_synonyms:
            row.synonyms = []
        if not request.include_documentation:
            row.documentation = None
        if context.version == 0:  # which has no sources
            row.is_default = row.config_source == Source.DEFAULT
    return result


def _broker_rows(config: BrokerConfig) -> list[DescribeConfigsResourceResult]:
    return [
        *(_row(name, row, config.sourced(row)) for name, row in SETTINGS.items()),
        *_inactive_rows(config),
        *_unknown_rows(config),
        *_listener_rows(config),
    ]


def _rows_of_all_brokers(
    rows: Iterable[DescribeConfigsResourceResult],
) -> Iterator[DescribeConfigsResourceResult]:
    """The settings that were changed for all brokers: what Kafka describes for an empty name."""
    for row in rows:
        common = [each for each in row.synonyms if each.source == Source.ALL_BROKERS]
        if common:
            row.value, row.config_source = common[0].value, Source.ALL_BROKERS
            row.synonyms = common
            yield row


def _of_another_broker(
    result: DescribeConfigsResult, config: BrokerConfig
) -> DescribeConfigsResult:
    result.error_code = ErrorCode.INVALID_REQUEST
    result.error_message = f"this is broker {config.broker_id}"
    return result


def _level_row(name: str, level: str) -> DescribeConfigsResourceResult:
    return DescribeConfigsResourceResult(
        name=name,
        value=level,
        config_source=_SOURCE_OF_LEVELS,
        config_type=Kind.STRING,
        documentation="The level from which on this logger writes to the broker's log.",
    )


def _row(name: str, setting: Setting, values: list[Sourced]) -> DescribeConfigsResourceResult:
    def show(shown: object) -> str | None:
        return None if setting.is_secret else setting.format(shown)

    return DescribeConfigsResourceResult(
        name=name,
        value=show(values[0].value),
        read_only=not setting.is_dynamic,
        config_source=values[0].source,
        is_sensitive=setting.is_secret,
        synonyms=[
            DescribeConfigsSynonym(name=synonym, value=show(shown), source=source)
            for synonym, shown, source in values
            if source != Source.DEFAULT or setting.name not in _WITHOUT_DEFAULT
        ],
        config_type=setting.kind,
        documentation=setting.doc,
    )


def _listener_rows(config: BrokerConfig) -> Iterator[DescribeConfigsResourceResult]:
    """The settings of single listeners that this broker was given, with their given text."""
    at_start = (config.static or config).of_listeners
    for listener, own in sorted(config.of_listeners.items()):
        for name in sorted(own):
            full = f"{LISTENER_PREFIX}{listener.lower()}.{name}"
            given = (
                (config.dynamic, full, Source.BROKER),
                (at_start.get(listener, {}), name, Source.FILE),
            )
            values = [
                Sourced(full, SETTINGS[name].parse(texts[key]), source)
                for texts, key, source in given
                if key in texts
            ]
            row = _row(full, SETTINGS[name], values)
            row.read_only = name not in DYNAMIC_OF_A_LISTENER
            yield row


def _inactive_rows(config: BrokerConfig) -> Iterator[DescribeConfigsResourceResult]:
    """The Kafka settings on which this broker does not act: as given, else Kafka's defaults."""
    start = config.static or config
    changed = ((config.dynamic, Source.BROKER), (config.dynamic_default, Source.ALL_BROKERS))
    fixed: Layers = ((start.inactive, Source.FILE), (DEFAULTS, Source.DEFAULT))
    for name in sorted({*DEFAULTS, *start.inactive}):
        setting = inactive(name)
        assert setting is not None, (
            "`inactive` holds only settings that this broker does not act on"
        )
        layers = (*changed, *fixed) if name in CHANGEABLE else fixed
        values = [(given[name], source) for given, source in layers if name in given]
        yield _inactive_row(name, setting, values)


def _unknown_rows(config: BrokerConfig) -> Iterator[DescribeConfigsResourceResult]:
    """The changed settings that neither Kafka nor this broker has, without their values.

    As in Kafka they count as sensitive, because they may be those of a plug-in.
    """
    layers = ((config.dynamic, Source.BROKER), (config.dynamic_default, Source.ALL_BROKERS))
    for name in sorted({name for given, _ in layers for name in given if not is_known(name)}):
        sources = [source for given, source in layers if name in given]
        yield DescribeConfigsResourceResult(
            name=name,
            value=None,
            read_only=True,
            config_source=sources[0],
            is_sensitive=True,
            synonyms=[DescribeConfigsSynonym(name, None, source) for source in sources],
            config_type=Kind.UNKNOWN,
        )


def _inactive_row(
    name: str, setting: Inactive, values: Sequence[tuple[str | None, Source]]
) -> DescribeConfigsResourceResult:
    is_secret = setting.kind is Kind.PASSWORD
    shown = [(None if is_secret else value, source) for value, source in values]
    return DescribeConfigsResourceResult(
        name=name,
        value=shown[0][0],
        read_only=name not in CHANGEABLE,
        config_source=shown[0][1],
        is_sensitive=is_secret,
        synonyms=[
            DescribeConfigsSynonym(name, text, source)
            for (text, source), (value, _) in zip(shown, values, strict=True)
            if value is not None
        ],
        config_type=setting.kind,
        documentation="Accepted without effect: this broker does not act on it.",
    )
