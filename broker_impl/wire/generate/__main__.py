"""Generates the modules: `python -m broker_impl.wire.generate kafka-clients-3.5.2.jar`."""

import sys
from pathlib import Path

from broker_impl.wire.generate.jar import read_messages
from broker_impl.wire.generate.module import api_table, message_module


def sources(jar: Path) -> dict[str, str]:
    """Return the name and content of every generated file."""
    messages = read_messages(jar)
    files = {f"{message.module}.py": message_module(message) for message in messages}
    return {**files, "apis.py": api_table(messages)}


def main(jar: Path, folder: Path) -> None:
    """Write every generated file into the folder."""
    for name, content in sources(jar).items():
        (folder / name).write_text(content)


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(__file__).parent.parent / "messages")
