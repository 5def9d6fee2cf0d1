"""The settings that result from AlterConfigs and IncrementalAlterConfigs (KIP-133, KIP-339)."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from broker_impl.config import Setting, unusable_setting
from broker_impl.errors import ApiError, ConfigError, ErrorCode, UnknownSettingError

SET, DELETE, APPEND, SUBTRACT = range(4)
"""Operations of IncrementalAlterConfigs."""

_SEPARATOR: Final = ","


class Change(NamedTuple):
    """One row of a request."""

    name: str
    operation: int
    value: str | None


def replaced(rows: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """The settings after AlterConfigs: those that the request names, and no others.

    If a name occurs twice, its last value counts, as in Kafka before 3.2 (librdkafka's test 0092).

    Raises ApiError INVALID_REQUEST if a name has no value.
    """
    last = {name: Change(name, SET, value) for name, value in _with_values(rows)}
    return changed({}, last.values(), {}, {})


def _with_values(rows: Iterable[tuple[str, str | None]]) -> Iterator[tuple[str, str]]:
    for name, value in rows:
        if value is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"the setting {name} has no value")
        yield name, value


def changed(
    current: Mapping[str, str],
    rows: Iterable[Change],
    settings: Mapping[str, Setting],
    inherited: Mapping[str, str],
) -> dict[str, str]:
    """The settings after IncrementalAlterConfigs is applied to ``current``.

    settings: the existing settings, by name. inherited: the value of each setting that is not
    overridden, on which APPEND and SUBTRACT then operate.

    Raises ApiError INVALID_REQUEST if a name occurs twice or has no value, the operation does not
    exist, or APPEND or SUBTRACT names a setting that is not a list; INVALID_CONFIG if it names an
    unknown one.
    """
    after = dict(current)
    seen: dict[str, None] = {}
    for name, operation, value in rows:
        if name in seen:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"the setting {name} occurs twice")
        seen[name] = None
        if operation == DELETE:
            after.pop(name, None)
            continue
        if value is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"the setting {name} has no value")
        if operation == SET:
            after[name] = value
        elif operation in (APPEND, SUBTRACT):
            known = after.get(name, inherited.get(name, ""))
            after[name] = _of_list(name, operation, value, known, settings)
        else:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{name}: operation {operation} is unknown")
    return after


def _of_list(
    name: str, operation: int, value: str, known: str, settings: Mapping[str, Setting]
) -> str:
    setting = settings.get(name)
    if setting is None:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(unusable_setting(name)))
    if not setting.is_list:
        raise ApiError(ErrorCode.INVALID_REQUEST, f"the setting {name} is not a list")
    named = _items(value)
    items = _items(known)
    if operation == APPEND:
        items += [item for item in named if item not in items]
    else:
        items = [item for item in items if item not in named]
    return _SEPARATOR.join(items)


def _items(text: str) -> list[str]:
    return [item.strip() for item in text.split(_SEPARATOR) if item.strip()]


def refusal(error: ConfigError) -> ApiError:
    """The error response for settings that are not valid, with the codes of Kafka 2.8."""
    is_unknown = isinstance(error, UnknownSettingError)
    return ApiError(
        ErrorCode.INVALID_CONFIG if is_unknown else ErrorCode.INVALID_REQUEST, str(error)
    )
