import pytest

from broker_impl.zookeeper import paths
from broker_impl.zookeeper.errors import BadArguments


@pytest.mark.parametrize(
    ("path", "parent", "name"), [("/a", "/", "a"), ("/a/b", "/a", "b"), ("/a/b/c", "/a/b", "c")]
)
def test_a_path_is_its_parent_and_its_name(path: str, parent: str, name: str) -> None:
    """A path is split into its parent and its name, and joined from them again."""
    assert (paths.parent_of(path), paths.name_of(path)) == (parent, name)
    assert paths.child_of(parent, name) == path


def test_ancestors_lead_to_the_root() -> None:
    """The ancestors of a path are listed nearest first, and the root has none."""
    assert list(paths.ancestors("/a/b/c")) == ["/a/b", "/a", "/"]
    assert list(paths.ancestors("/")) == []


@pytest.mark.parametrize("path", ["/", "/a", "/a.b/..c", "/a b", "/é"])
def test_paths_that_nodes_can_have(path: str) -> None:
    """The root is a valid path, and so are names of printable characters."""
    paths.check(path)


@pytest.mark.parametrize("path", ["", "a", "/a/", "//", "/a//b", "/.", "/a/..", "/\0", "/\x9f"])
def test_paths_that_no_node_can_have(path: str) -> None:
    """Relative paths, and paths with empty, dotted or unprintable parts, are refused."""
    with pytest.raises(BadArguments):
        paths.check(path)
