"""Kafka's own classes agree with the generated codecs, mainly for APIs without a Python package."""

import base64
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import msgspec
import pytest

from broker_impl.wire.messages import MessageModule, request_module, response_module
from broker_impl.wire.messages.apis import APIS

MODULES = {"request": request_module, "response": response_module}
MESSAGES_EACH = {key: 8 if key in (4, 5, 6, 7) else 2 for key in APIS}
VERSIONS_OF_KAFKA_3_5 = {18: range(4)}  # this package has one more version, of a newer Kafka
WITH_RECORDS = (0, 1)  # printed as objects, and refused unless they are well-formed batches


@pytest.mark.slow
def test_kafka_agrees(
    kafka_jar: Path, random_messages: Callable[[MessageModule, int, int], Any]
) -> None:
    """Kafka decodes each encoded message to the same values, and encodes them to the same bytes."""
    if shutil.which("java") is None:
        pytest.skip("no java on the PATH")
    asked: list[tuple[str, bytes, Any]] = []
    for key in APIS:
        for kind, module_of in MODULES.items():
            if key in WITH_RECORDS:
                continue
            module = module_of(key)
            for version in VERSIONS_OF_KAFKA_3_5.get(key, module.VERSIONS):
                source = random_messages(module, version, 1000 * key + version)
                for _ in range(MESSAGES_EACH[key]):
                    _, written = source.draw()
                    again = module.decode(memoryview(written), version)
                    asked.append((f"{kind} {key} {version} {written.hex()}", written, again))
    reread = subprocess.run(
        ["java", "-cp", str(kafka_jar), str(Path(__file__).with_name("Reread.java"))],
        input="\n".join(line for line, _, _ in asked),
        capture_output=True,
        text=True,
        check=False,
    )
    assert reread.returncode == 0, reread.stderr
    answers = reread.stdout.splitlines()
    assert len(answers) == 2 * len(asked)
    for (line, written, message), text, copy in zip(
        asked, answers[::2], answers[1::2], strict=True
    ):
        assert copy == written.hex(), line
        assert text == as_java(message, root=True), line


def as_java(value: Any, *, root: bool = False) -> str:
    """A value in the form in which Kafka's classes print it."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case str():
            return f"'{value}'"
        case UUID():
            return base64.urlsafe_b64encode(value.bytes).decode().rstrip("=")
        case list():
            items = (item if isinstance(item, str) else as_java(item) for item in value)
            return f"[{', '.join(items)}]"
        case memoryview() | bytes():
            return str([byte - 256 if byte > 127 else byte for byte in value])
        case msgspec.Struct():
            name = type(value).__name__ + ("Data" if root else "")
            fields = (
                f"{camel_case(field)}={as_java(getattr(value, field))}"
                for field in value.__struct_fields__
            )
            return f"{name}({', '.join(fields)})"
        case _:
            return str(value)


def camel_case(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
