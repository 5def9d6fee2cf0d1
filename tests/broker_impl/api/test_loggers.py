"""The levels of loggers are described and changed (KIP-412)."""

import logging
from collections.abc import Iterator
from typing import Any

import pytest

from broker_impl.api import loggers
from broker_impl.api.loggers import ROOT
from broker_impl.api.overrides import APPEND, DELETE, SET, Change
from broker_impl.errors import ApiError, ErrorCode
from broker_impl.wire.messages.alter_configs_request import (
    AlterConfigsRequest,
    AlterConfigsResource,
)
from broker_impl.wire.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from broker_impl.wire.messages.incremental_alter_configs_request import (
    AlterableConfig,
    IncrementalAlterConfigsRequest,
)
from broker_impl.wire.messages.incremental_alter_configs_request import (
    AlterConfigsResource as Altered,
)

TERM, ABOVE = "broker_impl.test_loggers.term", "broker_impl.test_loggers"
BROKER_LOGGER = 8


@pytest.fixture
def term() -> Iterator[logging.Logger]:
    """Two loggers, one above the other."""
    logging.getLogger(ABOVE).setLevel(logging.WARNING)
    yield logging.getLogger(TERM)
    for name in (TERM, ABOVE):
        logging.getLogger(name).setLevel(logging.NOTSET)


def test_a_level_applies_until_it_is_deleted(term: logging.Logger) -> None:
    """A deleted level is that of the logger above; loggers of libraries are not listed."""
    assert loggers.levels()[TERM] == "WARN"
    loggers.change([Change(TERM, SET, "TRACE"), Change(ABOVE, SET, "FATAL")])
    assert (loggers.levels()[TERM], loggers.levels()[ABOVE]) == ("TRACE", "FATAL")
    assert term.isEnabledFor(logging.DEBUG)
    loggers.change([Change(TERM, DELETE, None)])
    assert loggers.levels()[TERM] == "FATAL"
    assert next(iter(loggers.levels())) == ROOT
    assert "asyncio" not in loggers.levels()


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ([Change(TERM, SET, "DEBUG")], None),
        ([Change(ROOT, SET, "INFO")], None),
        ([Change(TERM, SET, "LOUD")], ErrorCode.INVALID_REQUEST),
        ([Change(TERM, SET, None)], ErrorCode.INVALID_REQUEST),
        ([Change("kafka.controller", SET, "INFO")], ErrorCode.INVALID_REQUEST),
        ([Change(TERM, APPEND, "INFO")], ErrorCode.INVALID_REQUEST),
        ([Change(ROOT, DELETE, None)], ErrorCode.INVALID_REQUEST),
        ([Change(TERM, SET, "INFO"), Change(TERM, DELETE, None)], ErrorCode.INVALID_REQUEST),
    ],
)
def test_what_is_refused(
    term: logging.Logger, changes: list[Change], code: ErrorCode | None
) -> None:
    """Kafka's levels, names and operations are accepted, and no others."""
    found = None
    try:
        loggers.refuse(changes)
    except ApiError as error:
        found = error.code
    assert found is code


async def test_requests_about_loggers(cluster: Any, term: logging.Logger) -> None:
    """A broker describes and changes its own loggers only, and AlterConfigs changes none."""
    await cluster.add(1)

    async def alter(name: str, level: str, *, validate_only: bool = False) -> int:
        row = Altered(BROKER_LOGGER, name, [AlterableConfig(TERM, SET, level)])
        request = IncrementalAlterConfigsRequest([row], validate_only)
        return int((await cluster.ask(1, request, 1)).responses[0].error_code)

    async def describe(name: str) -> Any:
        resource = DescribeConfigsResource(BROKER_LOGGER, name, [TERM])
        return (await cluster.ask(1, DescribeConfigsRequest([resource]), 4)).results[0]

    assert await alter("1", "DEBUG", validate_only=True) == 0
    assert not term.isEnabledFor(logging.DEBUG)
    assert await alter("1", "DEBUG") == 0
    assert term.isEnabledFor(logging.DEBUG)
    [row] = (await describe("1")).configs
    assert (row.name, row.value, row.config_source, row.read_only) == (TERM, "DEBUG", 6, False)
    for name in ("", "2"):
        assert await alter(name, "INFO") == ErrorCode.INVALID_REQUEST
        assert (await describe(name)).error_code == ErrorCode.INVALID_REQUEST
    request = AlterConfigsRequest([AlterConfigsResource(BROKER_LOGGER, "1", [])])
    answer = await cluster.ask(1, request, 2)
    assert answer.responses[0].error_code == ErrorCode.INVALID_REQUEST
    assert term.isEnabledFor(logging.DEBUG)
