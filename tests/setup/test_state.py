from pathlib import Path

import pytest

from setup import state


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A project after its set-up."""
    for name in ("uv.lock", "pyproject.toml", "setup/main.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    for name in (".venv/bin/python", "jre/bin/java", "toxiproxy-server"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch(mode=0o755)
    (tmp_path / ".tools").mkdir()
    return tmp_path


def keep(root: Path) -> dict[str, str]:
    """Save the state of a finished set-up."""
    variables = {
        "JAVA_HOME": str(root / "jre"),
        "FAULTLINE_TOXIPROXY": str(root / "toxiproxy-server"),
    }
    state.save(root / ".tools" / "env.json", state.stamp(root), variables)
    return variables


def load(root: Path) -> dict[str, str] | None:
    """Return the state that the next set-up would find."""
    return state.load(root / ".tools" / "env.json", state.stamp(root))


def test_kept_while_nothing_changes(root: Path) -> None:
    """The second set-up finds what the first one found."""
    assert load(root) is None
    assert keep(root) == load(root)


@pytest.mark.parametrize("name", ["uv.lock", "pyproject.toml", "setup/main.py"])
def test_dropped_when_a_project_file_changes(root: Path, name: str) -> None:
    """The state is dropped when a file changes that decides the set-up."""
    keep(root)
    (root / name).write_text("changed")
    assert load(root) is None


@pytest.mark.parametrize("name", [".venv/bin/python", "jre/bin/java", "toxiproxy-server"])
def test_dropped_when_a_thing_is_gone(root: Path, name: str) -> None:
    """The state is dropped when something that was installed is removed."""
    keep(root)
    (root / name).unlink()
    assert load(root) is None


def test_dropped_when_torn(root: Path) -> None:
    """A state file that cannot be read counts as no state."""
    keep(root)
    (root / ".tools" / "env.json").write_text('{"stamp": ')
    assert load(root) is None


def test_complete() -> None:
    """A command has the project's programs first on PATH, and the rest of its environment
    unchanged."""
    done = state.complete({"PATH": "/bin", "HOME": "/h"}, {"JAVA_HOME": "/j"}, Path("/p"))
    assert done == {"PATH": "/p/.venv/bin:/p/.tools/bin:/bin", "HOME": "/h", "JAVA_HOME": "/j"}
