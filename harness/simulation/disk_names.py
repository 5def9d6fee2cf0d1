"""A tree of names, and what a loss of power leaves of them.

A name that was made, changed or removed is sure only once its directory was synced; syncing a file
does not save its name. Of the changes to one directory those survive that came first: file systems
write them down in order. Two directories do not wait for each other, unless something was moved
between them; a rename happens whole or not at all.
"""

import random
from collections.abc import Iterator
from typing import TypeAlias

from harness.simulation.disk_inode import Inode


class Directory:
    """Names, and those of them that are sure to survive."""

    __slots__ = ("durable", "names")

    def __init__(self) -> None:
        self.names: dict[str, Node] = {}
        self.durable: dict[str, Node] = {}


Node: TypeAlias = Inode | Directory
_Naming: TypeAlias = tuple[Directory, str, Node | None]
"""In this directory this name is given to this node, or to nothing."""


class Names:
    """The file system's tree. Paths have "/" between their parts; "" is the root.

    error: what is raised, with a sentence, when a path is not what it should be.
    """

    def __init__(self, error: type[Exception]) -> None:
        self.root = Directory()
        self._error = error
        self._pending: list[tuple[_Naming, ...]] = []

    # Looking.

    def find(self, path: str) -> Node | None:
        """What has this name, if anything."""
        node: Node | None = self.root
        for part in filter(None, path.split("/")):
            if not isinstance(node, Directory):
                return None
            node = node.names.get(part)
        return node

    def file(self, path: str) -> Inode:
        """The file of this name."""
        node = self.find(path)
        if not isinstance(node, Inode):
            raise self._error(f"{path}: {'no such file' if node is None else 'is a directory'}")
        return node

    def directory(self, path: str) -> Directory:
        """The directory of this name."""
        node = self.find(path)
        if not isinstance(node, Directory):
            raise self._error(f"{path}: {'no such directory' if node is None else 'is a file'}")
        return node

    def files(self) -> Iterator[tuple[str, Inode]]:
        """Every file with its path, in the order of their names."""
        yield from _files(self.root, "")

    # Changing.

    def create(self, path: str) -> Inode:
        """The file of this name; a new one if there is none."""
        if self.find(path) is None:
            directory, name = self._parent(path)
            self._change((directory, name, Inode()))
        return self.file(path)

    def make_dir(self, path: str) -> None:
        """A new directory."""
        directory, name = self._parent(path)
        if name in directory.names:
            raise self._error(f"{path}: exists")
        self._change((directory, name, Directory()))

    def remove(self, path: str) -> None:
        """Take a file's name away."""
        self.file(path)
        directory, name = self._parent(path)
        self._change((directory, name, None))

    def remove_tree(self, path: str, rng: random.Random) -> None:
        """Remove a directory, first of all what is in it, in an order that nobody promises."""
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
        """Give a file or directory another name; a file of that name is no more."""
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

    # Surviving.

    def sync(self, path: str) -> None:
        """Make a directory's names survive, and what they depend on."""
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
        """Forget names that were not synced, and bytes of the files that are left."""
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
    """The directories whose other changes this one may not overtake."""
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
