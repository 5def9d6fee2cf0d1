"""The code that travels to executors needs no package that a worker may lack."""

import subprocess
import sys
import zipfile
from pathlib import Path

from checkers import shipping

ALLOWED = ("numpy", "pyarrow", *shipping.PACKAGES)
SCRIPT = """
import sys
class Refuse:
    def find_spec(self, name, path=None, target=None):
        root = name.partition(".")[0]
        known = root in sys.stdlib_module_names or root in {allowed}
        if not known and not root.startswith("_"):
            raise ImportError(f"a worker has no {{root}}")
sys.meta_path.insert(0, Refuse())
sys.path.insert(0, sys.argv[1])
from checkers import bucket_task
assert sys.argv[1] in bucket_task.__file__
print(len(bucket_task.REPORT))
"""


def test_the_archive_is_enough_for_an_executor(tmp_path: Path) -> None:
    """A Python with the archive, numpy and pyarrow alone can import what an executor runs."""
    path = shipping.archive(tmp_path)
    done = subprocess.run(
        [sys.executable, "-P", "-c", SCRIPT.format(allowed=ALLOWED), str(path)],
        cwd=tmp_path, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stdout.strip().isdigit(), done.stderr


def test_the_same_code_is_the_same_archive(tmp_path: Path) -> None:
    """An archive depends on nothing but the code."""
    first = shipping.archive(tmp_path).read_bytes()
    assert shipping.archive(tmp_path).read_bytes() == first
    with zipfile.ZipFile(tmp_path / "faultline-code.zip") as packed:
        assert {"checkers/bucket_task.py", "model/op.py"} <= {*packed.namelist()}


def test_the_archive_hides_no_library(tmp_path: Path) -> None:
    """The driver imports from the archive, too, and keeps its own libraries."""
    path = shipping.archive(tmp_path)
    names = [f"import {name}; print({name}.__file__)" for name in shipping.LIBRARIES]
    script = "\n".join(["import sys", f"sys.path.insert(0, {str(path)!r})", *names])
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert len(done.stdout.splitlines()) == len(shipping.LIBRARIES)
    assert str(path) not in done.stdout
