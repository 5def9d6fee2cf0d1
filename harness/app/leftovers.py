"""Removes the processes and containers that killed commands left behind.

A command that is killed with SIGKILL cannot stop its nodes. The next command of any kind does so
(:func:`remove_if_any`). ``faultline clean`` also removes what only uses disk space
(:mod:`harness.app.clean`). Before anything is removed, it is proved to belong to Faultline and its
owner is proved to have ended: see :mod:`harness.cluster.registry` and
:mod:`harness.cluster.containers.labels`.
"""

import contextlib
from collections.abc import Callable

import msgspec

from harness.cluster.state_folder import state_folder


class Removed(msgspec.Struct, frozen=True, kw_only=True):
    """What was removed, and what could not be."""

    processes: tuple[str, ...] = ()
    engine: tuple[str, ...] = ()
    """Containers, networks and volumes."""
    folders: tuple[str, ...] = ()
    healed: tuple[str, ...] = ()
    """What was undone in clusters of the user."""
    left: tuple[str, ...] = ()
    """A sentence for each thing that could not be removed."""

    @property
    def is_any(self) -> bool:
        return bool(self.processes or self.engine or self.folders or self.healed)


def remove(*, asks_engine: bool = False) -> Removed:
    """End the processes of commands that have ended, and remove their containers.

    The container engine is called only if such a command is known to have left containers, or with
    ``asks_engine``.
    """
    from harness.cluster import registry
    from harness.cluster.external import undo_record

    ended = registry.reap()
    undone = undo_record.undo_left()
    entries = registry.left_with_engine()
    engine: list[str] = []
    left: list[str] = []
    if entries or asks_engine:
        left += _reap_engine(engine.append, is_needed=bool(entries))
        if not left:
            for entry in entries:
                entry.unlink(missing_ok=True)
    return Removed(
        processes=tuple(f"{stray.pid} {stray.what}".strip() for stray in ended),
        engine=tuple(engine),
        healed=undone.done,
        left=(*left, *undone.left),
    )


def remove_if_any(say: Callable[[str], object]) -> None:
    """Call :func:`remove` before another command, at no cost if nothing is registered.

    An error is reported in one line, and does not stop the command.
    """
    try:
        if not any(_registered()):
            return
        removed = remove()
    except Exception as error:  # noqa: BLE001 - the command that was asked for is another
        say(f"the search for leftovers of earlier commands failed: {error}")
        return
    for line in sentences(removed):
        say(line)


def sentences(removed: Removed) -> list[str]:
    """Return one line for each kind of thing that was removed."""
    kinds = (
        ("ended processes of a killed command", removed.processes),
        ("removed from the container engine", removed.engine),
        ("removed folders", removed.folders),
        ("undone in your cluster", removed.healed),
    )
    lines = [f"{what}: {', '.join(names)}" for what, names in kinds if names]
    return [*lines, *(f"not removed: {each}" for each in removed.left)]


def _registered() -> list[str]:
    """Return the registry entries without checking their processes: usually there are none."""
    found: list[str] = []
    for folder in (state_folder(), state_folder().parent / "external"):
        with contextlib.suppress(OSError, RuntimeError):  # no folder yet, or no home
            found += [path.name for path in folder.iterdir()]
    return found


def _reap_engine(removed: Callable[[str], object], *, is_needed: bool) -> list[str]:
    """Remove stray objects from the container engine, and return what could not be removed.

    A missing engine is an error only if it is known to hold something (``is_needed``).
    """
    from harness.cluster.containers import container_cleanup, engine

    try:
        client = engine.connect()
    except engine.EngineError as error:
        return [f"containers, networks and volumes: {error}"] if is_needed else []
    try:
        return container_cleanup.reap(client, removed)
    finally:
        client.close()
