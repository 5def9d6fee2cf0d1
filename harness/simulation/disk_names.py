"""A tree of names, and which of its changes survive a loss of power.

A name that was created, changed or removed is durable only once its directory was synced; syncing a
file does not make its name durable. Changes to one directory reach the disk in order, as file
systems log them, so the first of them survive. Changes to two directories are independent, unless
something was moved between them; a rename is atomic.
"""

import random
from collections.abc import Iterator
from typing import TypeAlias

from harness.simulation.disk_inode import Inode


class Directory:
    """The names in a directory, and the names that are sure to survive."""

    __slots__ = ("durable", "names")

    def __init__(self) -> None:
        self.names: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}


Node: TypeAlias = Inode | Directory
_Naming: TypeAlias = tuple[Directory, str, Node | None]
"""In this directory, this name refers to this node; ``None`` if it is removed."""


class Names:
    """The tree of a file system. Paths have "/" between their parts; "" is the root.

    error: the class raised, with a sentence, for a path that is missing or of the wrong kind.
    """

    def __init__(self, error: type[Exception]) -> None:
        self.root = Directory()
        self._error = error
        self._pending: list[tuple[_Naming, ...]] = []

    # Look-ups.

    def find(self, path: str) -> Node | None:
        """The file or directory at ``path``, or ``None``."""
        node: Node | None = self.root
        for part in filter(None, path.split("/")):
            if not isinstance(node, Directory):
                return None
            node = node.names.get(part)
        return node

    def file(self, path: str) -> Inode:
        """The file at ``path``."""
        node = self.find(path)
        if not isinstance(node, Inode):
            raise self._error(f"{path}: {'no such file' if node is None else 'is a directory'}")
        return node

    def directory(self, path: str) -> Directory:
        """The directory at ``path``."""
        node = self.find(path)
        if not isinstance(node, Directory):
            raise self._error(f"{path}: {'no such directory' if node is None else 'is a file'}")
        return node

    def files(self) -> Iterator[tuple[str, Inode]]:
        """Yield the path and the inode of every file; the names in each directory are sorted."""
        yield from _files(self.root, "")

    # Changes.

    def create(self, path: str) -> Inode:
        """Return the file at ``path``, creating it if it does not exist."""
        if self.find(path) is None:
            directory, name = self._parent(path)
            self._change((directory, name, Inode()))
        return self.file(path)

    def make_dir(self, path: str) -> None:
        """Create a directory."""
        directory, name = self._parent(path)
        if name in directory.names:
            raise self._error(f"{path}: exists")
        self._change((directory, name, Directory()))

    def remove(self, path: str) -> None:
        """Remove a file."""
        self.file(path)
        directory, name = self._parent(path)
        self._change((directory, name, None))

    def remove_tree(self, path: str, rng: random.Random) -> None:
        """Remove a directory after its contents, in a random order: no system promises one."""
        inside = self.directory(path)
        names = sorted(inside.names)
        rng.shuffle(names)
        for name in names:
            if isinstance(inside.names[name], Directory):
                self.remove_tree(f"{path}/{name}", rng)
            else:
                self._change((inside, name, None))
        directory, name = self._parent(path)
        self._change((directory, name, None))

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory; an existing file at ``new`` is replaced."""
        node = self.find(old)
        if node is None:
            raise self._error(f"{old}: no such file")
        source, old_name = self._parent(old)
        target, new_name = self._parent(new)
        replaced = target.names.get(new_name)
        if replaced is node:
            return
        if isinstance(replaced, Directory) or (replaced and isinstance(node, Directory)):
            raise self._error(f"{old} cannot replace {new}")
        if isinstance(node, Directory) and f"{new}/".startswith(f"{old}/"):
            raise self._error(f"{old} cannot be moved into itself")
        self._change((source, old_name, None), (target, new_name, node))

    # Durability.

    def sync(self, path: str) -> None:
        """Make a directory's names durable, and the changes that they depend on."""
        wanted = [self.directory(path)]
        sure: list[tuple[_Naming, ...]] = []
        unsure: list[tuple[_Naming, ...]] = []
        for change in reversed(self._pending):
            touched = _touched(change)
            if any(directory in wanted for directory in touched):
                wanted += touched
                sure.append(change)
            else:
                unsure.append(change)
        for change in reversed(sure):
            _write_down(change)
        self._pending = unsure[::-1]

    def lose_power(self, rng: random.Random) -> None:
        """Discard changes of names at random unless synced, then bytes of the remaining files."""
        chance_lost = rng.choice((0.0, 0.3, 1.0))
        stopped: list[Directory] = []
        for change in self._pending:
            touched = _touched(change)
            is_cut_off = any(directory in stopped for directory in touched)
            if is_cut_off or rng.random() < chance_lost:
                stopped += touched
            else:
                _write_down(change)
        self._pending.clear()
        _start_again(self.root)
        for _, inode in self.files():
            inode.lose_power(rng)

    def _parent(self, path: str) -> tuple[Directory, str]:
        parent, _, name = path.rpartition("/")
        if not name:
            raise self._error(f"{path or 'the root'} cannot be changed")
        return self.directory(parent), name

    def _change(self, *change: _Naming) -> None:
        for directory, name, node in change:
            _assign(directory.names, name, node)
        self._pending.append(change)


def _touched(change: tuple[_Naming, ...]) -> list[Directory]:
    """The directories in which this change keeps its place in the order of changes."""
    directories = [directory for directory, _, _ in change]
    return directories + [node for _, _, node in change if isinstance(node, Directory)]


def _write_down(change: tuple[_Naming, ...]) -> None:
    for directory, name, node in change:
        _assign(directory.durable, name, node)


def _assign(names: dict[str, Node], name: str, node: Node | None) -> None:
    if node is None:
        names.pop(name, None)
    else:
        names[name] = node


def _start_again(directory: Directory) -> None:
    directory.names = dict(directory.durable)
    for node in directory.names.values():
        if isinstance(node, Directory):
            _start_again(node)


def _files(directory: Directory, prefix: str) -> Iterator[tuple[str, Inode]]:
    for name, node in sorted(directory.names.items()):
        if isinstance(node, Directory):
            yield from _files(node, f"{prefix}{name}/")
        else:
            yield prefix + name, node
