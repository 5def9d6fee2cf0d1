"""Typed options of faults: what a fault accepts, in which units and within which bounds.

A plan holds the options of a fault as a table. The table is checked when the plan is resolved, and
it is read into the fault's own type when the fault is applied.
"""

from collections.abc import Mapping
from typing import Annotated, Any, TypeVar

import msgspec
from msgspec import Meta, inspect

from model.text import brief

Key = Annotated[str, Meta(pattern=r"^.+-[0-9]+$", description="a partition (TOPIC-PARTITION)")]
Seconds = Annotated[float, Meta(ge=0, le=3600, description="seconds")]
SomeSeconds = Annotated[float, Meta(gt=0, le=3600, description="seconds")]
Broker = Annotated[str, Meta(pattern=r"^broker-[1-9][0-9]*$", description="the id of a broker")]


class Once(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A state of a partition; every field that is given must hold."""

    key: Key
    leader: Broker | None = None
    """The broker that leads the partition."""
    in_sync: list[Broker] = []
    """Brokers that are in the ISR."""
    out_of_sync: list[Broker] = []
    """Brokers that are not in the ISR."""
    lasting_s: Seconds = 0.0
    """How long the state must have lasted."""

    @property
    def brokers(self) -> tuple[str, ...]:
        """The brokers that it names."""
        return (*([self.leader] if self.leader else []), *self.in_sync, *self.out_of_sync)


class Options(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The options that every fault has."""

    when: str | None = None
    """The operation of a client in the middle of which the fault is applied."""
    once: Once | None = None
    """The state of the cluster that must be reached before the fault is applied."""


Kind = TypeVar("Kind", bound=Options)

Share = Annotated[float, Meta(gt=0, le=1)]


def read(kind: type[Kind], table: Mapping[str, Any]) -> Kind:
    """Return the options in a table; raises ``ValueError`` for a table that is refused."""
    if (why := refusal(kind, table)) is not None:
        raise ValueError(why)
    return msgspec.convert(dict(table), kind)


def refusal(kind: type[Options], table: Mapping[str, Any]) -> str | None:
    """Return which option in a table is wrong and what is allowed; ``None`` if all are right."""
    fields = {field.encode_name: field for field in msgspec.structs.fields(kind)}
    for name, value in table.items():
        if name not in fields:
            return f"no option is called {brief(name)}; there is {', '.join(sorted(fields))}"
        try:
            msgspec.convert(value, fields[name].type)
        except msgspec.ValidationError:
            allowed = described(inspect.type_info(fields[name].type))
            return f"{name} = {brief(value)}: must be {allowed}"
    for name, field in fields.items():
        if field.required and name not in table:
            return f"{name} is missing: it must be {described(inspect.type_info(field.type))}"
    return None


def described(type_: inspect.Type, unit: str = "") -> str:
    """Return in words which values a type has; ``unit`` is from the type's description."""
    match type_:
        case inspect.Metadata(type=of, extra_json_schema=schema):
            return described(of, (schema or {}).get("description", unit))
        case inspect.UnionType(types=types):
            given = [each for each in types if not isinstance(each, inspect.NoneType)]
            return " or ".join(described(each, unit) for each in given)
        case inspect.LiteralType(values=values):
            return " or ".join(map(str, values))
        case inspect.BoolType():
            return "true or false"
        case inspect.ListType(item_type=of, min_length=least):
            some = "a list of one or more" if least else "a list"
            return f"{some}, each {described(of)}"
        case inspect.StructType(fields=fields):
            parts = "; ".join(f"{each.encode_name}, {described(each.type)}" for each in fields)
            return f"a table of {parts}"
        case inspect.IntType() | inspect.FloatType():
            number = "a whole number" if isinstance(type_, inspect.IntType) else "a number"
            return f"{number}{unit and f' of {unit}'}{_bounds(type_)}"
        case _:
            return unit or "text"


def _bounds(type_: inspect.IntType | inspect.FloatType) -> str:
    low = "" if type_.ge is None else f" from {type_.ge:,.15g}"
    if type_.gt is not None:
        low = f" above {type_.gt:,.15g}"
    high = "" if type_.le is None else f" to {type_.le:,.15g}"
    return low + (f", {type_.le:,.15g} at most" if type_.gt is not None and high else high)
