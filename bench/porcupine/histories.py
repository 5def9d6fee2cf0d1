"""The histories that both checkers judge: Porcupine's own, and some that are generated.

All of them are written in one form, so that both checkers read the same files: events as JSON, one
per line, and a manifest that names the model of each file.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from bench.adversarial.executions import Shape, generate
from bench.adversarial.objects import KINDS
from checkers import recorded
from model.history import BadHistory
from model.op import Op

OF_PORCUPINE, OURS = "Porcupine's", "generated"
"""The groups of histories."""

SHAPES = (
    Shape("register", 2_000, 4),
    Shape("register", 200, 8, 0.05),
    Shape("register", 2_000, 10, values=0),
    Shape("register", 300, 6, spoiled="order"),
    Shape("cas-register", 2_000, 4),
    Shape("cas-register", 400, 10),
    Shape("cas-register", 200, 5, 0.08),
    Shape("cas-register", 300, 5, spoiled="impossible"),
    Shape("cas-register", 120, 5, 0.15, spoiled="order"),
    Shape("kv", 2_000, 10),
    Shape("kv", 1_000, 30, values=0),
    Shape("kv", 400, 10, 0.1),
    Shape("kv", 1_000, 20, spoiled="order"),
    Shape("queue", 1_000, 3),
    Shape("queue", 400, 8, values=0),
    Shape("queue", 200, 4, spoiled="order"),
    Shape("queue", 60, 4, 0.05),
    Shape("set", 1_000, 5),
    Shape("set", 300, 10, 0.05),
    Shape("set", 200, 5, spoiled="impossible"),
)


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """A history in the manifest."""

    name: str
    group: str
    file: str
    model: str
    initial: Any = None


def write(folder: Path, data: Path | None) -> list[Entry]:
    """Write all histories and the manifest into a folder, and return what is in the manifest.

    ``data`` is the folder with Porcupine's histories, if there is one.
    """
    found = []
    events: Iterable[tuple[Entry, list[Op]]] = [*_generated(), *(_recorded(data) if data else ())]
    for entry, history in events:
        lines = b"\n".join(_line(event) for event in history)
        (folder / entry.file).write_bytes(lines + b"\n")
        found.append(entry)
    (folder / "manifest.json").write_bytes(msgspec.json.encode(found))
    return found


def _line(event: Op) -> bytes:
    return msgspec.json.encode(
        {"process": event.process, "type": event.type, "f": event.f, "value": event.value}
    )


def _generated() -> Iterator[tuple[Entry, list[Op]]]:
    for number, shape in enumerate(SHAPES):
        kind = KINDS[shape.kind]
        entry = Entry(
            name=shape.name,
            group=OURS,
            file=f"generated-{number:02}.json",
            model=kind.model,
            initial=kind.initial if "register" in kind.model else None,
        )
        yield entry, generate(shape)


def _recorded(data: Path) -> Iterator[tuple[Entry, list[Op]]]:
    """Yield Porcupine's own histories. One of its logs has no events, and is left out."""
    for path in sorted((*data.glob("jepsen/*.log"), *data.glob("kv/*.txt"))):
        try:
            found = recorded.read(path)
        except BadHistory as error:
            if str(error).endswith("has no events"):
                continue
            raise
        entry = Entry(
            name=f"{path.parent.name}/{path.name}",
            group=OF_PORCUPINE,
            file=f"{path.stem}.json",
            model="kv" if path.parent.name == "kv" else "cas-register",
            initial=found.initial,
        )
        yield entry, found.events
