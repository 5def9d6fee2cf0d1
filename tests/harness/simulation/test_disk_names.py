"""Which files and directories are left after a power loss."""

import random
from collections.abc import Callable

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from harness.simulation.disk_names import Names

RNG = random.Random(2)


def outcomes(prepare: Callable[[Names], object], tries: int = 2000) -> set[tuple[str, ...]]:
    """Return the sets of files that are left after many power losses."""
    RNG.seed(2)  # independent of what other tests have drawn
    found = set()
    for _ in range(tries):
        names = Names(OSError)
        prepare(names)
        names.lose_power(RNG)
        found.add(tuple(path for path, _ in names.files()))
    return found


def test_a_synced_file_without_a_synced_name_may_be_lost() -> None:
    """Syncing a file does not save its name; syncing the directory does."""

    def unnamed(names: Names) -> None:
        names.create("f").sync()

    def named(names: Names) -> None:
        names.create("f").sync()
        names.sync("")

    assert outcomes(unnamed) == {(), ("f",)}
    assert outcomes(named) == {("f",)}


def test_changes_of_a_directory_survive_in_their_order() -> None:
    """Of two changes of a directory, the second never survives without the first."""

    def prepare(names: Names) -> None:
        names.create("a")
        names.create("b")
        names.rename("a", "c")

    assert outcomes(prepare) == {(), ("a",), ("a", "b"), ("b", "c")}


def test_directories_do_not_wait_for_each_other() -> None:
    """A later change of another directory may survive alone.

    A moved file is in exactly one of two.
    """

    def prepare(names: Names) -> None:
        names.make_dir("d")
        names.make_dir("e")
        names.sync("")
        names.create("d/f")
        names.create("e/g")

    assert ("e/g",) in outcomes(prepare)

    def move(names: Names) -> None:
        prepare(names)
        names.sync("d")
        names.sync("e")
        names.rename("d/f", "e/f")

    assert outcomes(move) == {("d/f", "e/g"), ("e/f", "e/g")}

    def move_and_sync_one(names: Names) -> None:
        move(names)
        names.sync("e")

    assert outcomes(move_and_sync_one) == {("e/f", "e/g")}


def test_a_removed_file_may_come_back_as_it_was_synced() -> None:
    """A removed file may come back with at least the bytes of its last sync."""
    for _ in range(50):
        names = Names(OSError)
        names.create("f").append(b"abc")
        names.file("f").sync()
        names.sync("")
        names.remove("f")
        names.lose_power(RNG)
        assert [bytes(inode.data) for _, inode in names.files()] in ([], [b"abc"])


def test_a_tree_may_be_removed_in_part() -> None:
    """A power loss in a removal leaves any of the files, until the parent directory is synced."""

    def prepare(names: Names) -> None:
        names.make_dir("d")
        names.create("d/a")
        names.create("d/b")
        names.sync("")
        names.sync("d")
        names.remove_tree("d", RNG)

    assert outcomes(prepare) == {(), ("d/a",), ("d/b",), ("d/a", "d/b")}


class NamesAgainstHistories(RuleBasedStateMachine):
    """A model that keeps, for each of two directories, all of its states since its last sync."""

    paths = st.tuples(st.sampled_from("de"), st.sampled_from("abc"))

    @initialize()
    def begin(self) -> None:
        self.names = Names(OSError)
        self.names.make_dir("d")
        self.names.make_dir("e")
        self.names.sync("")
        self.count = 0
        self.histories: dict[str, list[dict[str, bytes]]] = {"d": [{}], "e": [{}]}

    def now(self, directory: str) -> dict[str, bytes]:
        return self.histories[directory][-1]

    @rule(path=paths)
    def create(self, path: tuple[str, str]) -> None:
        directory, name = path
        if name in self.now(directory):
            return
        self.count += 1
        tag = str(self.count).encode()
        inode = self.names.create("/".join(path))
        inode.append(tag)
        inode.sync()
        self.histories[directory].append({**self.now(directory), name: tag})

    @rule(path=paths, new=st.sampled_from("abc"))
    def rename(self, path: tuple[str, str], new: str) -> None:
        directory, name = path
        names = dict(self.now(directory))
        if name in names:
            self.names.rename("/".join(path), f"{directory}/{new}")
            names[new] = names.pop(name)
            self.histories[directory].append(names)

    @rule(path=paths)
    def remove(self, path: tuple[str, str]) -> None:
        directory, name = path
        names = dict(self.now(directory))
        if names.pop(name, None) is not None:
            self.names.remove("/".join(path))
            self.histories[directory].append(names)

    @rule(directory=st.sampled_from("de"))
    def sync(self, directory: str) -> None:
        self.names.sync(directory)
        self.histories[directory] = [self.now(directory)]

    @precondition(lambda self: any(len(history) > 1 for history in self.histories.values()))
    @rule(seed=st.integers(0, 2**32))
    def lose_power(self, seed: int) -> None:
        self.names.lose_power(random.Random(seed))
        for directory, history in self.histories.items():
            left = {
                path.removeprefix(f"{directory}/"): bytes(inode.data)
                for path, inode in self.names.files()
                if path.startswith(f"{directory}/")
            }
            assert left in history
            self.histories[directory] = [left]


TestNamesAgainstHistories = NamesAgainstHistories.TestCase
TestNamesAgainstHistories.settings = settings(max_examples=60, stateful_step_count=25)
