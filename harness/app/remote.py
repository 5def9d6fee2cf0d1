"""Finds histories and folders of runs at URIs, and copies their files to this machine."""

import contextlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from checkers import engine
from checkers.stores import Entry, Store
from harness.app import check_names, run_folder, temporary
from harness.app.uris import Uri
from model import history
from model.history import BadHistory

_COPIED = frozenset(run_folder.FILES) - {"history.jsonl", "history.parquet", "history.edn"}
"""The files of a run's folder that a judgement or a report reads, besides the history."""
_NODES = "nodes"
_OF_NODES = ("log.txt", "server.properties")


class Remote(NamedTuple):
    """A history at a URI, and the folder of its run if it has one."""

    name: str
    """What messages call it."""
    history: Entry
    is_run: bool = False
    files: Mapping[str, str] = {}
    """The URIs of the other files of the run, by their paths in its folder."""


def histories(store: Store, uri: Uri, say: Callable[[str], None]) -> list[Remote]:
    """Return the histories and runs at a URI, or those that it matches as a pattern.

    What a pattern matches and holds no history is left out and named by ``say``, unless nothing
    would be left. Raises :class:`~model.history.BadHistory`.
    """
    found = store.matching(uri)
    inside = {each.uri: store.inside(each.uri) for each in found if each.is_folder}
    if [each.uri for each in found] != [uri]:
        kept = [each for each in found if _may_hold_history(each, inside.get(each.uri, ()))]
        for each in found if kept else ():
            if each not in kept:
                say(f"{engine.redacted(each.uri)} holds no history and is left out")
        found = kept or found
    return [_remote(store, each, inside.get(each.uri, ())) for each in found]


def _may_hold_history(entry: Entry, inside: Sequence[Entry]) -> bool:
    if entry.is_folder:
        return any(each.name in check_names.OF_RUNS for each in inside)
    return check_names.may_be_history(entry.name)


def _remote(store: Store, entry: Entry, inside: Sequence[Entry]) -> Remote:
    name = engine.redacted(entry.uri)
    if not entry.is_folder:
        return Remote(name, entry)
    by_name = {each.name: each for each in inside}
    for file in run_folder.FILES:
        if file in by_name and by_name[file].is_folder:
            raise BadHistory(f"{name}/{file} is a folder; it must be a regular file")
    plan = by_name.get("plan.json")
    if plan is not None and (why := run_folder.too_large(f"{name}/plan.json", plan.size)):
        raise BadHistory(why)
    second = history.segment(Path("history.jsonl"), 1).name
    if second in by_name:
        raise BadHistory(
            f"{name}: this history has several files ({second} and so on), and a URI is judged by"
            " one; copy the folder to this machine and judge the copy"
        )
    for file in ("history.jsonl", "history.parquet"):
        if file in by_name:
            others = {each: by_name[each].uri for each in _COPIED if each in by_name}
            nodes = by_name.get(_NODES)
            if nodes is not None and nodes.is_folder:
                others |= _of_nodes(store, nodes)
            return Remote(name, by_name[file], True, others)
    if "history.edn" in by_name:
        return Remote(f"{name}/history.edn", by_name["history.edn"])
    raise BadHistory(f"{name} is not a run's folder: it has no history.jsonl")


def _of_nodes(store: Store, nodes: Entry) -> dict[str, str]:
    found = {}
    for node in store.inside(nodes.uri):
        for file in store.inside(node.uri) if node.is_folder else ():
            if file.name in _OF_NODES and not file.is_folder:
                found[f"{_NODES}/{node.name}/{file.name}"] = file.uri
    return found


@contextlib.contextmanager
def copied_run(store: Store, remote: Remote) -> Iterator[Path | None]:
    """Yield a folder with the run's files except its history; ``None`` for a bare history."""
    if not remote.is_run:
        yield None
        return
    with temporary.folder(None, "faultline-remote-") as home:
        folder = home / (remote.name.rstrip("/").rpartition("/")[2] or "run")
        folder.mkdir()
        for name, uri in remote.files.items():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            store.copy(uri, folder / name)
        yield folder


@contextlib.contextmanager
def copied_history(store: Store, remote: Remote, folder: Path | None) -> Iterator[Path]:
    """Yield a copy of the history, in the run's folder if it has one, so that a report finds it.

    A :class:`~model.history.BadHistory` that is raised in the block names the original.
    """
    entry = remote.history
    name = engine.redacted(entry.uri)
    with contextlib.ExitStack() as stack:
        if folder is None:
            folder = stack.enter_context(temporary.folder(None, "faultline-remote-"))
        copy = folder / entry.name
        store.copy(entry.uri, copy)
        size = copy.stat().st_size
        if size != entry.size:
            raise BadHistory(f"{name} has changed: {size:,} of {entry.size:,} bytes were read")
        try:
            yield copy
        except BadHistory as error:
            raise BadHistory(str(error).replace(str(copy), name)) from error
