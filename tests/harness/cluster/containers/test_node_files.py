"""A node's configuration reaches its container; its log and data on this machine do not."""

import io
import tarfile
from pathlib import Path, PurePosixPath

from harness.cluster.containers.node_files import archive


def test_files_of_a_folder_are_readable_by_all(tmp_path: Path) -> None:
    """Regular files are copied with their content; folders within are left out."""
    (tmp_path / "server.properties").write_text("broker.id=1\n")
    (tmp_path / "server.properties").chmod(0o600)
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "00.log").write_bytes(b"x")
    with tarfile.open(
        fileobj=io.BytesIO(archive(tmp_path.iterdir(), PurePosixPath("/etc/faultline")))
    ) as tar:
        members = {member.name: member for member in tar}
        assert list(members) == ["etc/faultline", "etc/faultline/server.properties"]
        assert members["etc/faultline"].isdir()
        assert members["etc/faultline"].mode == 0o755
        found = members["etc/faultline/server.properties"]
        assert found.mode == 0o644
        content = tar.extractfile(found)
        assert content is not None
        assert content.read() == b"broker.id=1\n"
