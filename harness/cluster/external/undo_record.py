"""Records what a run has broken or created in a user's cluster, so that a later command undoes it.

Each entry is written before the cluster is changed. The harness undoes its entries itself at the
end of the run; if it was killed, the next command does (:func:`undo_left`), because the file names
an owner that has ended.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable
from pathlib import Path

import msgspec

from harness.cluster.address import Address
from harness.cluster.external.hooks import Call, HookError, Runner
from harness.cluster.external.own_names import remove_names
from harness.cluster.registry import Known, known, place
from harness.cluster.state_folder import state_folder

LOG = "hooks.log"
_NAMES_S = 10.0
"""How long a later command tries to remove the names of a run."""


def folder() -> Path:
    """Return the folder of all records."""
    return state_folder().parent / "external"


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """The file of one run."""

    owner: Known
    place: dict[str, str]
    log: str
    """The run's log of hooks."""
    observed: tuple[tuple[str, int], ...]
    prefix: str
    """The beginning of the names of what the run has created in the cluster."""
    undo: tuple[Call, ...] = ()
    """What undoes each change, in the order of the changes."""
    hooks: tuple[Known, ...] = ()
    """The processes of hooks that run."""

    @property
    def is_stray(self) -> bool:
        """Return whether the run has ended, as far as this place can decide that."""
        return self.place == dict(place()) and not self.owner.alive()


class UndoRecord:
    """The changes of one run that are not yet undone."""

    def __init__(self, log: Path, observed: tuple[Address, ...], prefix: str) -> None:
        """Write the record; from now on what has the prefix belongs to this run."""
        owner = known(os.getpid(), "harness")
        assert owner is not None, "the running process exists"
        self._path = folder() / f"{owner.pid}-{prefix}.json"
        self._undo: dict[tuple[str, str], Call] = {}
        self._hooks: dict[int, Known] = {}
        self._record = Record(
            owner=owner,
            place=dict(place()),
            log=str(log),
            observed=tuple((host, port) for host, port in observed),
            prefix=prefix,
        )
        self._write()

    def breaks(self, what: str, where: str, undo: Call) -> None:
        """Record how a change is undone, before it is made."""
        self._undo[what, where] = undo
        self._write()

    def heals(self, what: str, where: str) -> None:
        """Record that a change has been undone."""
        if self._undo.pop((what, where), None) is not None:
            self._write()

    def is_broken(self, what: str, where: str) -> bool:
        """Return whether a change is not yet undone."""
        return (what, where) in self._undo

    @property
    def left(self) -> tuple[tuple[tuple[str, str], Call], ...]:
        """What is not yet undone, the latest change first."""
        return tuple(reversed(self._undo.items()))

    def hook_started(self, pid: int, what: str) -> None:
        """Record the process of a hook."""
        if (process := known(pid, what)) is not None:
            self._hooks[pid] = process
            self._write()

    def hook_ended(self, pid: int) -> None:
        """Record that the process of a hook has ended."""
        if self._hooks.pop(pid, None) is not None:
            self._write()

    def close(self) -> None:
        """Remove the record, if nothing is left to undo."""
        if not self._undo:
            self._path.unlink(missing_ok=True)

    def _write(self) -> None:
        record = msgspec.structs.replace(
            self._record, undo=tuple(self._undo.values()), hooks=tuple(self._hooks.values())
        )
        _replace(self._path, record)


def _replace(path: Path, record: Record) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.parent.chmod(0o700)  # hooks may contain secrets
    draft = path.with_suffix(".draft")
    draft.touch(mode=0o600)
    draft.write_bytes(msgspec.json.encode(record))
    draft.replace(path)


class Undone(msgspec.Struct, frozen=True, kw_only=True):
    """What was undone, and a sentence for each thing that could not be."""

    done: tuple[str, ...] = ()
    left: tuple[str, ...] = ()


def undo_left() -> Undone:
    """Undo what runs that have ended have left in their clusters."""
    done: list[str] = []
    left: list[str] = []
    for path in sorted(folder().glob("*.json")):
        try:
            record = msgspec.json.decode(path.read_bytes(), type=Record)
        except FileNotFoundError:
            continue
        except (OSError, msgspec.MsgspecError) as error:
            left.append(f"{path}: {error}")
            continue
        if record.is_stray:
            failed, names = asyncio.run(_undo(record, done.append))
            left += [*failed, *names]
            if not failed:  # a cluster that is gone has no names, either
                path.unlink(missing_ok=True)
    return Undone(done=tuple(done), left=tuple(left))


async def _undo(record: Record, say: Callable[[str], object]) -> tuple[list[str], list[str]]:
    """Undo the changes of a record; return what failed, and which names could not be removed."""
    for hook in record.hooks:
        if hook.alive():
            with contextlib.suppress(ProcessLookupError):
                os.killpg(hook.pid, signal.SIGKILL)
            say(f"ended the hook {hook.what}")
    log = Path(record.log)
    runner = Runner(log if log.parent.is_dir() else folder() / LOG)
    failed = []
    for call in reversed(record.undo):
        failed += await _tried(runner, call, say)
    addresses = tuple(Address(host, port) for host, port in record.observed)
    removed = await remove_names(addresses, record.prefix, _NAMES_S)
    if removed.is_any:
        say(f"removed {removed.described}")
    return failed, [*removed.left]


async def _tried(runner: Runner, call: Call, say: Callable[[str], object]) -> list[str]:
    try:
        await runner.succeed(call)
    except HookError as error:
        return [str(error)]
    say(call.what)
    return []
