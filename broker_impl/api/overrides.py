"""What a request to alter settings makes of those that were set before (KIP-133, KIP-339)."""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from broker_impl.config import Setting, unusable_setting
from broker_impl.errors import ApiError, ConfigError, ErrorCode

SET, DELETE, APPEND, SUBTRACT = range(4)
"""Operations of IncrementalAlterConfigs."""

_SEPARATOR: Final = ","


class Change(NamedTuple):
    """One row of a request."""

    name: str
    operation: int
    value: str | None


def replaced(rows: Iterable[tuple[str, str | None]]) -> dict[str, str]:
    """What AlterConfigs leaves: what it names, and nothing else.

    ApiError INVALID_REQUEST: a name that occurs twice, or has no value.
    """
    return changed({}, [Change(name, SET, value) for name, value in rows], {}, {})


def changed(
    current: Mapping[str, str],
    rows: Iterable[Change],
    settings: Mapping[str, Setting],
    inherited: Mapping[str, str],
) -> dict[str, str]:
    """What IncrementalAlterConfigs leaves of ``current``.

    settings: that there are, by name. inherited: the value of each that was not set, which a list
    is appended to and subtracted from.

    ApiError INVALID_REQUEST: a name that occurs twice, has no value, or an operation that does not
    exist; INVALID_CONFIG: an operation of lists on what is none.
    """
    after = dict(current)
    seen: dict[str, None] = {}
    for name, operation, value in rows:
        if name in seen:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{name} occurs twice")
        seen[name] = None
        if operation == DELETE:
            after.pop(name, None)
            continue
        if value is None:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{name} has no value")
        if operation == SET:
            after[name] = value
        elif operation in (APPEND, SUBTRACT):
            known = after.get(name, inherited.get(name, ""))
            after[name] = _of_list(name, operation, value, known, settings)
        else:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{name}: there is no operation {operation}")
    return after


def _of_list(
    name: str, operation: int, value: str, known: str, settings: Mapping[str, Setting]
) -> str:
    setting = settings.get(name)
    if setting is None:
        raise ApiError(ErrorCode.INVALID_CONFIG, str(unusable_setting(name)))
    if not setting.is_list:
        raise ApiError(ErrorCode.INVALID_CONFIG, f"{name} is no list")
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
    """The answer to settings that cannot be obeyed."""
    return ApiError(ErrorCode.INVALID_CONFIG, str(error))
