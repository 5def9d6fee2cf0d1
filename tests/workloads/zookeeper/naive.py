"""A ZooKeeper in a dictionary, which answers the operations of workloads at once, and correctly.

A bug can be planted: it changes an answer, or what a write does.
"""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import msgspec

from model.op import Op

Value = dict[str, Any]


@dataclass
class Znode:
    """A znode and its metadata."""

    data: str
    czxid: int
    mzxid: int
    owner: int = 0
    version: int = 0

    def stat(self) -> dict[str, int]:
        zxids = {"czxid": self.czxid, "mzxid": self.mzxid, "pzxid": self.czxid}
        return {**zxids, "version": self.version, "cversion": 0, "owner": self.owner}


class Refusal(Exception):
    """A request is rejected; the message is the error."""


@dataclass
class Naive:
    """The tree, and the watches of sessions."""

    rng: random.Random
    doubt_p: float = 0.0
    """The probability that a write has no answer; it takes effect in half of the cases."""
    tree: dict[str, Znode] = field(default_factory=dict)
    zxid: int = 10
    numbers: dict[str, int] = field(default_factory=dict)
    watches: dict[tuple[int, str], int] = field(default_factory=dict)
    pending: dict[int, list[list[Any]]] = field(default_factory=dict)
    late: dict[int, list[list[Any]]] = field(default_factory=dict)
    """Events that a planted bug holds back."""
    broken: Callable[["Naive", Op, Value], Value | None] = lambda naive, op, result: None
    """Returns another answer for an operation; ``None`` for the right one."""

    def answer(self, op: Op) -> Op:
        """Return the completion of an operation."""
        before = self._copy()
        try:
            result = HANDLERS[op.f](self, op.process, op.value)
        except Refusal as error:
            return self._done(op, "fail", {}, str(error))
        if op.f == "abandon":
            return self._done(op, "info", {}, "crash")
        if op.f not in READS and self.rng.random() < self.doubt_p:
            if self.rng.random() < 0.5:
                self.tree, self.numbers, self.watches, self.pending = before
            self._end(op.process)
            return self._done(op, "info", {}, "connection-loss")
        other = self.broken(self, op, result)
        return self._done(op, "ok", result if other is None else other)

    def _done(self, op: Op, kind: Any, result: Value, error: str | None = None) -> Op:
        value = {**op.value, **result, "session": op.process, "connection": 1}
        value.setdefault("zxid", self.zxid)
        if events := self.pending.pop(op.process, None):
            value["events"] = events
        return msgspec.structs.replace(op, type=kind, value=value, error=error)

    def _copy(self) -> tuple[Any, ...]:
        tree = {path: Znode(**vars(znode)) for path, znode in self.tree.items()}
        pending = {process: list(events) for process, events in self.pending.items()}
        return tree, dict(self.numbers), dict(self.watches), pending

    def next_zxid(self) -> int:
        self.zxid += 1
        return self.zxid

    def at(self, path: str, version: int = -1) -> Znode:
        if path not in self.tree:
            raise Refusal("no-node")
        if version not in (-1, self.tree[path].version):
            raise Refusal("bad-version")
        return self.tree[path]

    def put(self, process: int, path: str, data: str, *, ephemeral: bool = False) -> str:
        if path in self.tree:
            raise Refusal("node-exists")
        zxid = self.next_zxid()
        self.tree[path] = Znode(data, zxid, zxid, process if ephemeral else 0)
        return path

    def write(self, path: str, data: str, version: int, zxid: int | None = None) -> dict[str, int]:
        znode = self.at(path, version)
        znode.data, znode.version = data, znode.version + 1
        znode.mzxid = self.next_zxid() if zxid is None else zxid
        self.notify(path, "changed")
        return znode.stat()

    def drop(self, path: str, version: int = -1) -> None:
        self.at(path, version)
        self.next_zxid()
        del self.tree[path]
        self.notify(path, "deleted")

    def notify(self, path: str, kind: str) -> None:
        for process, watched in [key for key in self.watches if key[1] == path]:
            number = self.watches.pop((process, watched))
            self.pending.setdefault(process, []).append([number, kind])

    def below(self, parent: str) -> Iterator[str]:
        return (path for path in sorted(self.tree) if path.rpartition("/")[0] == parent)

    def _end(self, process: int) -> None:
        """End a session, with its ephemeral znodes."""
        for path in [path for path, znode in self.tree.items() if znode.owner == process + 1]:
            del self.tree[path]
        self.watches = {key: n for key, n in self.watches.items() if key[0] != process}

    def close(self, process: int) -> None:
        self.next_zxid()
        self._end(process)

    def sequential(self, path: str) -> str:
        parent = path.rpartition("/")[0]
        number = self.numbers.get(parent, -1) + 1
        self.numbers[parent] = number
        return f"{path}{number:010}"


def _create(naive: Naive, process: int, value: Value) -> Value:
    path = naive.sequential(value["path"]) if value.get("sequential") else value["path"]
    owner = process + 1 if value.get("ephemeral") else 0
    naive.put(process, path, value.get("data", ""))
    naive.tree[path].owner = owner
    return {"created": path}


def _set(naive: Naive, process: int, value: Value) -> Value:
    return {"stat": naive.write(value["path"], value["data"], value.get("version", -1))}


def _delete(naive: Naive, process: int, value: Value) -> Value:
    naive.drop(value["path"], value.get("version", -1))
    return {}


def _get(naive: Naive, process: int, value: Value) -> Value:
    znode = naive.tree.get(value["path"])
    if znode is None:
        return {"data": None, "stat": None}
    shown: Value = {"data": znode.data, "stat": znode.stat()}
    key = (process, value["path"])
    if value.get("watch") is not None and key not in naive.watches:
        naive.watches[key] = value["watch"]
        shown["registered"] = value["watch"]
    return shown


def _children(naive: Naive, process: int, value: Value) -> Value:
    names = [path.rpartition("/")[2] for path in naive.below(value["path"])]
    return {"children": names, "stat": {**Znode("", 1, 1).stat(), "cversion": naive.zxid}}


def _multi(naive: Naive, process: int, value: Value) -> Value:
    for number, (kind, path, *rest) in enumerate(value["parts"]):
        try:
            naive.at(path, rest[-1] if kind != "create" else -1)
        except Refusal as error:
            raise Refusal(f"{error} of part {number}") from None
    zxid = naive.next_zxid()
    return {
        "results": [
            naive.write(path, rest[0], -1, zxid) if kind == "set" else None
            for kind, path, *rest in value["parts"]
        ]
    }


def _add(naive: Naive, process: int, value: Value) -> Value:
    total = int(naive.at(value["path"]).data or "0") + value["delta"]
    return {"total": total, "stat": naive.write(value["path"], str(total), -1)}


def _acquire(naive: Naive, process: int, value: Value) -> Value:
    if any(naive.below(value["path"])):
        raise Refusal("timeout")
    path = naive.sequential(f"{value['path']}/n-")
    naive.put(process, path, "")
    naive.tree[path].owner = process + 1
    return {"node": path, "token": naive.tree[path].czxid}


def _release(naive: Naive, process: int, value: Value) -> Value:
    naive.drop(value["node"])
    return {}


def _guard(naive: Naive, process: int, value: Value) -> Value:
    naive.at(value["node"], 0)
    return {"stat": naive.write(value["resource"], str(value["token"]), -1)}


def _elect(naive: Naive, process: int, value: Value) -> Value:
    naive.put(process, value["path"], "")
    naive.tree[value["path"]].owner = process + 1
    epoch = naive.at(value["epoch_path"]).version + 1
    stat = naive.write(value["epoch_path"], str(epoch), -1)
    return {"epoch": epoch, "stat": stat, "node": value["path"]}


def _lead(naive: Naive, process: int, value: Value) -> Value:
    naive.at(value["epoch_path"], value["epoch"])
    return {"stat": naive.write(value["resource"], str(value["epoch"]), -1)}


def _resign(naive: Naive, process: int, value: Value) -> Value:
    naive.at(value["epoch_path"], value["epoch"])
    naive.drop(value["node"])
    return {}


def _enqueue(naive: Naive, process: int, value: Value) -> Value:
    path = naive.put(process, naive.sequential(f"{value['path']}/n-"), value["data"])
    return {"created": path}


def _dequeue(naive: Naive, process: int, value: Value) -> Value:
    for path in naive.below(value["path"]):
        data = naive.tree[path].data
        naive.drop(path)
        return {"deleted": path, "data": data}
    return {"deleted": None, "data": None}


def _enter(naive: Naive, process: int, value: Value) -> Value:
    raise Refusal("timeout")


def _intrude(naive: Naive, process: int, value: Value) -> Value:
    return {"granted": False}


def _close(naive: Naive, process: int, value: Value) -> Value:
    naive.close(process)
    return {}


READS = ("get", "read", "children", "close", "abandon", "intrude")
HANDLERS: dict[str, Callable[[Naive, int, Value], Value]] = {
    "create": _create,
    "set": _set,
    "delete": _delete,
    "get": _get,
    "read": _get,
    "children": _children,
    "multi": _multi,
    "add": _add,
    "acquire": _acquire,
    "release": _release,
    "guard": _guard,
    "elect": _elect,
    "lead": _lead,
    "resign": _resign,
    "enqueue": _enqueue,
    "dequeue": _dequeue,
    "enter": _enter,
    "close": _close,
    "abandon": _close,
    "intrude": _intrude,
}
