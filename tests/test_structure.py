"""The structure of the code: imports without circles, files and functions that are short.

import-linter checks the order of the packages (``pyproject.toml``). Within a package, its graph of
imports also contains imports for annotations (``if TYPE_CHECKING``) and imports inside functions,
and no module may import itself through others, not even in one of these ways.
"""

import ast
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import grimp
import pytest
import rustworkx

from tests.test_words import ROOMS

LINES_MAX = 500
"""The most lines of a file."""
FUNCTION_LINES_P90 = 20
"""Nine of ten functions have at most this many lines, with their docstrings."""
GENERATED = "broker_impl/wire/messages/"


def _modules(repository: Path, rooms: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the path and the source of every module that is written by hand."""
    for room in rooms:
        for path in sorted((repository / room).rglob("*.py")):
            place = path.relative_to(repository).as_posix()
            if not place.startswith(GENERATED):
                yield place, path.read_text()


def _packages(repository: Path) -> list[str]:
    """The packages of the product."""
    settings = tomllib.loads((repository / "pyproject.toml").read_text())
    packages: list[str] = settings["tool"]["importlinter"]["root_packages"]
    return packages


def _circles(packages: Sequence[str]) -> list[list[str]]:
    """The groups of modules that import each other, directly or through others."""
    imports = grimp.build_graph(*packages, cache_dir=None)
    graph = rustworkx.PyDiGraph()
    nodes = {module: graph.add_node(module) for module in sorted(imports.modules)}
    graph.add_edges_from_no_data(
        [
            (node, nodes[imported])
            for module, node in nodes.items()
            for imported in imports.find_modules_directly_imported_by(module)
        ]
    )
    groups = rustworkx.strongly_connected_components(graph)
    return sorted(sorted(graph[node] for node in group) for group in groups if len(group) > 1)


def _long_files(repository: Path) -> dict[str, int]:
    """The files that are too long, with the number of their lines."""
    lines = {place: source.count("\n") for place, source in _modules(repository, ROOMS)}
    return {place: count for place, count in lines.items() if count > LINES_MAX}


def _function_lines_p90(repository: Path, packages: Sequence[str]) -> int:
    """The 90th percentile of the lines of functions, from ``def`` to the last line."""
    lengths = sorted(
        (node.end_lineno or node.lineno) - node.lineno + 1
        for _, source in _modules(repository, packages)
        for node in ast.walk(ast.parse(source))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    )
    return lengths[len(lengths) * 9 // 10]


def test_no_circle_of_imports(repository: Path) -> None:
    """No module imports itself through others."""
    assert _circles(_packages(repository)) == []


def test_no_long_file(repository: Path) -> None:
    """No file has more lines than a reader can keep in mind."""
    assert _long_files(repository) == {}


def test_most_functions_are_short(repository: Path) -> None:
    """Nine of ten functions fit on half a screen."""
    assert _function_lines_p90(repository, _packages(repository)) <= FUNCTION_LINES_P90


# The checks find what they look for.


def _write(root: Path, files: dict[str, str]) -> None:
    for place, source in files.items():
        (root / place).parent.mkdir(parents=True, exist_ok=True)
        (root / place).write_text(source)


@pytest.mark.parametrize(
    "back",
    [
        "from lower_package import upper\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import lower_package.upper\n",
        "def late():\n    from lower_package.upper import value\n    return value\n",
        "import upper_package\n",
    ],
    ids=["plain", "for annotations", "in a function", "through another package"],
)
def test_a_circle_is_found(back: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A circle is found in whatever way the lower module imports the upper one."""
    _write(
        tmp_path,
        {
            "lower_package/__init__.py": "",
            "lower_package/upper.py": "import lower_package.middle\nvalue = 1\n",
            "lower_package/middle.py": "from lower_package.lower import other\n",
            "lower_package/lower.py": back,
            "upper_package/__init__.py": "from lower_package import upper\n",
        },
    )
    monkeypatch.syspath_prepend(tmp_path)
    (circle,) = _circles(["lower_package", "upper_package"])
    assert {f"lower_package.{name}" for name in ("upper", "middle", "lower")} <= {*circle}


def test_two_ways_down_are_no_circle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules that import the same module, and one another in one direction, are no circle."""
    _write(
        tmp_path,
        {
            "straight_package/__init__.py": "",
            "straight_package/upper.py": "from straight_package import lower, middle\n",
            "straight_package/middle.py": "import straight_package.lower\n",
            "straight_package/lower.py": "",
        },
    )
    monkeypatch.syspath_prepend(tmp_path)
    assert _circles(["straight_package"]) == []


def test_a_long_file_is_found(tmp_path: Path) -> None:
    """A file with one line too many is found, in tests too, unless it is generated."""
    _write(
        tmp_path,
        {
            "model/limit.py": "\n" * LINES_MAX,
            "tests/model/test_over.py": "\n" * (LINES_MAX + 1),
            f"{GENERATED}fetch_request.py": "\n" * (LINES_MAX + 1),
        },
    )
    assert _long_files(tmp_path) == {"tests/model/test_over.py": LINES_MAX + 1}


@pytest.mark.parametrize(("long", "p90"), [(1, 2), (2, 30)])
def test_long_functions_are_found(long: int, p90: int, tmp_path: Path) -> None:
    """The percentile rises when more than one of ten functions is long; methods count too."""
    short_ones = "async def short():\n    pass\n" * (11 - long)
    long_ones = "class C:\n" + ("    def long(self):\n" + "        pass\n" * 29) * long
    _write(tmp_path, {"model/functions.py": short_ones + long_ones})
    assert _function_lines_p90(tmp_path, ["model"]) == p90
