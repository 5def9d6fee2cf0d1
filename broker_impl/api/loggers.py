"""The levels of this broker's loggers, which operators change while it runs (KIP-412).

A logger has the name of a module, such as ``broker_impl.node.controller.term``; ``root`` is the
logger above all of them. A change applies at once and is lost when the broker stops. Levels have
the names of log4j: Python's CRITICAL is FATAL, and TRACE is below DEBUG.
"""

import logging
from collections.abc import Iterable
from typing import Final

from broker_impl.api.overrides import DELETE, SET, Change
from broker_impl.errors import ApiError, ErrorCode

ROOT: Final = "root"
LEVELS: Final = {
    "TRACE": 5,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_OURS: Final = "broker_impl"


def levels() -> dict[str, str]:
    """Return the level that applies to each logger, sorted by name, with the root logger first."""
    ours = [name for name in logging.root.manager.loggerDict if name.partition(".")[0] == _OURS]
    return {name: _level(_logger(name)) for name in (ROOT, *sorted(ours))}


def refuse(changes: Iterable[Change]) -> None:
    """Raise ApiError if one of the changes is not valid, as Kafka does.

    INVALID_REQUEST: a repeated name, another operation than SET and DELETE, a DELETE of the root
    logger, or an unknown logger or level.
    """
    known = levels()
    seen: set[str] = set()
    for name, operation, value in changes:
        if name in seen:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"the logger {name} occurs twice")
        seen.add(name)
        if operation not in (SET, DELETE):
            raise ApiError(ErrorCode.INVALID_REQUEST, f"{name}: a level is set or deleted")
        if name not in known:
            raise ApiError(ErrorCode.INVALID_REQUEST, f"there is no logger {name}")
        if operation == DELETE and name == ROOT:
            raise ApiError(ErrorCode.INVALID_REQUEST, "the root logger must have a level")
        if operation == SET and value not in LEVELS:
            raise ApiError(
                ErrorCode.INVALID_REQUEST, f"{name}={value}: must be one of {', '.join(LEVELS)}"
            )


def change(changes: Iterable[Change]) -> None:
    """Apply changes that :func:`refuse` accepts; a deleted level is that of the logger above."""
    for name, operation, value in changes:
        level = logging.NOTSET if operation == DELETE else LEVELS[value or ""]
        _logger(name).setLevel(level)


def _logger(name: str) -> logging.Logger:
    return logging.getLogger(None if name == ROOT else name)


def _level(logger: logging.Logger) -> str:
    """The name of the level that applies, or of the nearest level below an unnamed one."""
    effective = logger.getEffectiveLevel()
    named = [name for name, number in LEVELS.items() if number <= effective]
    return named[-1] if named else "TRACE"
