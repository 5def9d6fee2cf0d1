"""One setting: its names, its kind of value, its bounds, and how text becomes its value."""

import re
from dataclasses import dataclass, field
from typing import Any

from broker_impl.errors import ConfigError
from broker_impl.kafka_settings import Kind, check_range, parse_value

INT32_MAX = 2**31 - 1
INT64_MAX = 2**63 - 1
_SECRET = re.compile(r"password|secret|jaas\.config|private\.key|keystore\.key")


def key(
    name: str,
    default: Any,
    doc: str,
    *,
    low: float | None = None,
    high: float | None = None,
    one_of: tuple[str, ...] | None = None,
    pattern: str | None = None,
    form: str = "",
    topic: str | None = None,
    kind: Kind | None = None,
    dynamic: bool = False,
) -> Any:
    """Define a setting: Kafka's name, default, documentation and bounds.

    one_of: the valid values; of a list, those of its entries (as in Kafka, the list may be empty).
    pattern: a regular expression that the text must match, which ``form`` describes. topic: its
    name as a topic's setting. kind: Kafka's kind of value, if the field's type does not determine
    it. dynamic: it can change at run time, as all settings can that a topic overrides.
    """
    metadata = {"name": name, "doc": doc, "low": low, "high": high, "one_of": one_of, "kind": kind}
    more = {"pattern": pattern, "form": form, "topic": topic, "dynamic": dynamic}
    return field(default=default, metadata=metadata | more, repr=not _is_secret(name, kind))


def _is_secret(name: str, kind: Kind | None) -> bool:
    return kind is Kind.PASSWORD or _SECRET.search(name) is not None


@dataclass(frozen=True, slots=True)
class Setting:
    """One row of the table of settings."""

    field: str
    name: str
    kind: Kind
    default: Any
    doc: str
    low: float | None = None
    high: float | None = None
    one_of: tuple[str, ...] | None = None
    topic: str | None = None
    pattern: str | None = None
    form: str = ""
    dynamic: bool = False

    def parse(self, text: str, name: str | None = None) -> Any:
        """Convert a text to the typed value, or raise a ConfigError that says what is valid."""
        name = name or self.name
        value = parse_value(self.kind, name, text)
        said = _entries(text) if self.is_list else (value,)
        if self.one_of is not None and not all(each in self.one_of for each in said):
            raise ConfigError(f"{name}={text}: must be one of {', '.join(self.one_of)}")
        if self.pattern is not None and re.fullmatch(self.pattern, text.strip()) is None:
            raise ConfigError(f"{name}={text}: must be {self.form}")
        check_range(name, text, value, self.low, self.high)
        return value

    def format(self, value: Any) -> str:
        """Convert a value to text, as DescribeConfigs shows it."""
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        return str(value)

    @property
    def is_dynamic(self) -> bool:
        """Whether the setting can change at run time, as every one that topics can override."""
        return self.dynamic or self.topic is not None

    @property
    def is_list(self) -> bool:
        return self.kind is Kind.LIST

    @property
    def is_secret(self) -> bool:
        return _is_secret(self.name, self.kind)


def _entries(text: str) -> list[str]:
    """The entries of a list as Kafka splits it: no text is an empty list, "a," has two entries."""
    return [entry.strip() for entry in text.split(",")] if text.strip() else []
