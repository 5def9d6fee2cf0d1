"""The generated code, from schemas to files."""

import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from broker_impl.errors import WireError
from broker_impl.wire import messages
from broker_impl.wire.generate.__main__ import main, sources
from broker_impl.wire.generate.module import api_table, message_module
from broker_impl.wire.generate.schema import Message, parse

CHECKED_IN = Path(messages.__file__).parent

SCHEMA = {
    "apiKey": 7,
    "name": "TestRequest",
    "validVersions": "0-3",
    "flexibleVersions": "2+",
    "fields": [
        {"name": "Flag", "type": "bool", "versions": "1+", "default": "true"},
        {"name": "Hint", "type": "string", "versions": "1+", "ignorable": True},
        {"name": "Buffer", "type": "bytes", "versions": "0+", "nullableVersions": "1+"},
        {"name": "Type", "type": "int16", "versions": "0+"},
        {"name": "Names", "type": "[]string", "versions": "0+", "nullableVersions": "1+"},
        {
            "name": "Extra",
            "type": "Pair",
            "versions": "2+",
            "taggedVersions": "2+",
            "tag": 0,
            "ignorable": True,
            "fields": [
                {"name": "Key", "type": "uuid", "versions": "2+"},
                {"name": "Value", "type": "float64", "versions": "2+", "default": "-1.5"},
            ],
        },
        {"name": "Late", "type": "int64", "versions": "3+", "tag": 1, "taggedVersions": "3+"},
    ],
}


def message() -> Message:
    return parse(SCHEMA)


@pytest.fixture(scope="module")
def generated() -> Any:
    """The module that is generated from the schema above."""
    module = ModuleType("generated")
    sys.modules[module.__name__] = module
    exec(compile(message_module(message()), "generated.py", "exec"), module.__dict__)
    return module


def test_the_module_says_what_it_is(generated: Any) -> None:
    """The API key, name, versions and first flexible version are constants of the module."""
    said = (generated.API_KEY, generated.NAME, generated.VERSIONS, generated.FLEXIBLE_FROM)
    assert said == (7, "Test", range(4), 2)


def test_versions_write_what_they_have(generated: Any) -> None:
    """Versions differ in their layouts: presence, nullability, compact lengths, tagged fields."""
    value = generated.TestRequest(buffer=memoryview(b"ab"), type=3, names=["x"], hint="h")
    value.extra.value = 2.0
    written = [b"".join(generated.encode(value, version)).hex(" ") for version in range(3)]
    assert written == [
        "00 00 00 02 61 62 00 03 00 00 00 01 00 01 78",
        "01 00 01 68 00 00 00 02 61 62 00 03 00 00 00 01 00 01 78",
        "01 02 68 03 61 62 00 03 02 02 78 01 00 19" + " 00" * 16 + " 40 00 00 00 00 00 00 00 00",
    ]
    assert generated.decode(memoryview(bytes.fromhex(written[2])), 2) == value
    older = generated.decode(memoryview(bytes.fromhex(written[0])), 0)
    assert (older.flag, older.hint, older.extra) == (True, "", generated.Pair())


@pytest.mark.parametrize(
    ("field", "value", "version"),
    [("flag", False, 0), ("late", 1, 2), ("buffer", None, 0), ("names", None, 0)],
)
def test_nothing_is_dropped_in_silence(
    generated: Any, field: str, value: Any, version: int
) -> None:
    """A value that a version cannot encode is refused, unless its field is ignorable."""
    full = generated.TestRequest(hint="dropped where there is no room for it")
    generated.encode(full, version)
    setattr(full, field, value)
    with pytest.raises(WireError, match=field):
        generated.encode(full, version)
    generated.encode(full, version + 1)


def test_an_unknown_tag_is_skipped(generated: Any) -> None:
    """Unknown tagged fields of a newer peer are skipped, and known ones are read (KIP-482)."""
    value = generated.TestRequest(late=5)
    written = b"".join(generated.encode(value, 3))
    known = bytes([1, 1, 8]) + (5).to_bytes(8, "big")
    assert written.endswith(known)
    more = written.removesuffix(known) + bytes([2]) + known[1:] + bytes([9, 3]) + b"new"
    assert generated.decode(memoryview(more), 3) == value


def test_a_known_tag_has_its_size(generated: Any) -> None:
    """A tagged field that is longer than its value is refused."""
    written = b"".join(generated.encode(generated.TestRequest(late=5), 3))
    longer = written.replace(b"\1\1\x08", b"\1\1\x09") + b"\0"
    with pytest.raises(WireError, match="tagged field"):
        generated.decode(memoryview(longer), 3)


def test_the_table_of_apis() -> None:
    """The table of APIs has one entry per request, in the order of keys."""
    table: dict[str, Any] = {"__name__": "apis"}
    exec(api_table([message()]), table)
    api = table["APIS"][7]
    assert (api.name, api.stem, api.versions, api.flexible_from) == ("Test", "test", range(4), 2)


def test_the_source_is_formatted(tmp_path: Path) -> None:
    """The formatter changes nothing in a generated module, not even long lines."""
    file = tmp_path / "generated.py"
    file.write_text(message_module(message()))
    subprocess.run(
        [sys.executable, "-m", "ruff", "format", "--check", "--line-length=100", str(file)],
        check=True,
        capture_output=True,
    )


def test_what_is_checked_in_is_what_the_jar_says(kafka_jar: Path, tmp_path: Path) -> None:
    """The checked-in modules are those that the jar's schemas generate, and no others."""
    main(kafka_jar, tmp_path)
    fresh = {file.name: file.read_text() for file in tmp_path.iterdir()}
    assert fresh == sources(kafka_jar)
    ours = {file.name: file.read_text() for file in CHECKED_IN.glob("*.py")}
    del ours["__init__.py"]
    assert fresh == ours
