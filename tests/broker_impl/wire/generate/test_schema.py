"""Kafka's message schemas, parsed to values."""

import json
from typing import Any

import pytest

from broker_impl.wire.generate.schema import (
    FOREVER,
    SchemaError,
    Versions,
    load,
    parse,
    snake_case,
)


def schema(*fields: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {
        "apiKey": 7,
        "name": "TestRequest",
        "validVersions": "0-3",
        "flexibleVersions": "2+",
        "fields": list(fields),
        **more,
    }


@pytest.mark.parametrize(
    ("written", "ours"),
    [
        ("LeaderAndIsrRequest", "leader_and_isr_request"),
        ("ZkVersion", "zk_version"),
        ("isKRaftController", "is_k_raft_controller"),
        ("topicID", "topic_id"),
        ("name", "name"),
    ],
)
def test_snake_case(written: str, ours: str) -> None:
    """A new word begins at a capital, unless it is among capitals."""
    assert snake_case(written) == ours


@pytest.mark.parametrize(
    ("text", "versions"),
    [
        ("3", Versions(3, 3)),
        ("3-5", Versions(3, 5)),
        ("3+", Versions(3, FOREVER)),
        ("none", Versions(1, 0)),
        (None, Versions(1, 0)),
    ],
)
def test_versions(text: str | None, versions: Versions) -> None:
    """Every form of a version range in a schema is parsed; `none` contains no version."""
    parsed = Versions.parse(text)
    assert parsed == versions
    if text not in (None, "none"):
        assert str(parsed) == text
    assert [version for version in range(10) if version in parsed] == list(
        range(versions.first, min(versions.last, 9) + 1)
    )


def test_comments_are_lines_of_their_own() -> None:
    """Comment lines are removed, and two slashes inside a value stay."""
    text = '// licence\n{"name":\n  // why\n "a//b"}'
    assert load(text) == {"name": "a//b"}


@pytest.mark.parametrize(
    ("field", "python_type", "default"),
    [
        ({"type": "int32"}, "int", "0"),
        ({"type": "int32", "default": "0x10"}, "int", "16"),
        ({"type": "int64", "default": "-1"}, "int", "-1"),
        ({"type": "bool", "default": "true"}, "bool", "True"),
        ({"type": "bool"}, "bool", "False"),
        ({"type": "string"}, "str", '""'),
        ({"type": "string", "nullableVersions": "1+"}, "str | None", '""'),
        (
            {"type": "string", "nullableVersions": "0+", "default": "null"},
            "str | None",
            "None",
        ),
        ({"type": "bytes"}, "Buffer", 'b""'),
        ({"type": "records", "nullableVersions": "0+"}, "Records | None", "None"),
        ({"type": "uuid"}, "UUID", "NO_UUID"),
        ({"type": "float64"}, "float", "0.0"),
        ({"type": "[]int32"}, "list[int]", "[]"),
        ({"type": "Inner", "fields": []}, "Inner", "Inner()"),
        ({"type": "[]Inner", "fields": []}, "list[Inner]", "[]"),
    ],
)
def test_fields(field: dict[str, Any], python_type: str, default: str) -> None:
    """A field's annotation and default follow from its type, nullability and default."""
    message = parse(schema({"name": "X", "versions": "0+", **field}))
    (parsed,) = message.root.fields
    assert (parsed.name, parsed.python_type, parsed.default) == ("x", python_type, default)


def test_structs_come_after_those_they_hold() -> None:
    """Each struct comes after the structs in its fields, common structs included."""
    message = parse(
        schema(
            {"name": "A", "type": "[]Outer", "versions": "0+"},
            {"name": "B", "type": "Own", "versions": "0+", "fields": []},
            commonStructs=[
                {
                    "name": "Outer",
                    "fields": [{"name": "I", "type": "[]Inner", "versions": "0+"}],
                },
                {"name": "Inner", "fields": []},
            ],
        )
    )
    assert list(message.structs) == ["Inner", "Outer", "Own", "TestRequest"]
    assert message.root.name == "TestRequest"
    assert (message.api_name, message.module) == ("Test", "test_request")


def test_a_tagged_field_may_leave_out_its_versions() -> None:
    """A tagged field without versions exists in the versions in which it is tagged."""
    field = {"name": "X", "type": "int32", "taggedVersions": "2+", "tag": 5}
    (parsed,) = parse(schema(field)).root.fields
    assert parsed.versions == parsed.tagged == Versions(2, FOREVER)
    assert parsed.tag == 5


@pytest.mark.parametrize(
    ("field", "why"),
    [
        ({"type": "int32", "flexibleVersions": "1+"}, "overrides its flexible versions"),
        ({"type": "varint"}, "unknown type varint"),
        ({"type": "Inner", "fields": [], "nullableVersions": "0+"}, "nullable struct"),
        ({"type": "[]Test", "fields": [{"name": "Y", "type": "int4"}]}, "unknown type int4"),
        (
            {"type": "[]records", "nullableVersions": "0+"},
            "records must be nullable in all versions",
        ),
        ({"type": "records"}, "records must be nullable in all versions"),
        ({"type": "[]TestRequest", "fields": []}, "two structs have the name TestRequest"),
    ],
)
def test_what_we_do_not_know_is_refused(field: dict[str, Any], why: str) -> None:
    """A schema with an unknown feature is refused, rather than generated wrongly."""
    with pytest.raises(SchemaError, match=why):
        parse(schema({"name": "X", "versions": "0+", **field}))


def test_a_schema_is_json_with_comments() -> None:
    """A schema file of the jar is JSON with comment lines."""
    text = f"// Licensed to somebody\n{json.dumps(schema())}"
    assert parse(load(text)).versions == Versions(0, 3)
