"""The files of a node's folder, as an archive that the engine copies into the node's container."""

import io
import tarfile
from collections.abc import Iterable
from pathlib import Path, PurePosixPath


def archive(paths: Iterable[Path], into: PurePosixPath) -> bytes:
    """Return a tar archive of those of the paths that are regular files, readable by all users.

    ``into`` is their folder in the container, an absolute path.
    """
    found = io.BytesIO()
    with tarfile.open(fileobj=found, mode="w") as tar:
        place = tarfile.TarInfo(str(into.relative_to("/")))
        place.type, place.mode = tarfile.DIRTYPE, 0o755
        tar.addfile(place)
        for path in sorted(paths):
            if not path.is_file():
                continue
            content = path.read_bytes()
            member = tarfile.TarInfo(f"{place.name}/{path.name}")
            member.size, member.mode = len(content), 0o644
            tar.addfile(member, io.BytesIO(content))
    return found.getvalue()
