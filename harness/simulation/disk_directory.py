"""One directory of a simulated disk, as a program's own disk: several of them share one disk."""

from collections.abc import Sequence

from harness.simulation.disk_access import DiskAccess, SimFile


class DiskDirectory:
    """A directory of a process's disk, created if it does not exist, with a lock of its own.

    It has the operations of `DiskAccess`, with paths relative to the directory.
    """

    def __init__(self, access: DiskAccess, name: str) -> None:
        self._access = access
        self._name = name
        # Its parent knows the name, also while every operation in the directory fails.
        if name not in access.list(name.rpartition("/")[0]):
            access.make_dir(name)
            access.fsync_dir("")

    def open(self, path: str, *, create: bool = False) -> SimFile:
        """Open a file, with `create` one that may not exist yet."""
        return self._access.open(self._path(path), create=create)

    def read(self, path: str) -> bytes:
        """Read a whole file."""
        return self._access.read(self._path(path))

    def write(self, path: str, data: bytes) -> None:
        """Replace a file; it is durable on return."""
        self._access.write(self._path(path), data)

    def exists(self, path: str) -> bool:
        """Return whether there is a file or directory at `path`."""
        return self._access.exists(self._path(path))

    def is_dir(self, path: str) -> bool:
        """Return whether there is a directory at `path`."""
        return self._access.is_dir(self._path(path))

    def list(self, path: str) -> list[str]:
        """List the names in a directory, sorted."""
        return self._access.list(self._path(path))

    def make_dir(self, path: str) -> None:
        """Create a directory whose parent exists."""
        self._access.make_dir(self._path(path))

    def remove(self, path: str) -> None:
        """Remove a file."""
        self._access.remove(self._path(path))

    def remove_dir(self, path: str) -> None:
        """Remove a directory with all its contents."""
        self._access.remove_dir(self._path(path))

    def rename(self, old: str, new: str) -> None:
        """Rename a file or directory."""
        self._access.rename(self._path(old), self._path(new))

    def fsync_dir(self, path: str) -> None:
        """Make the names in a directory durable."""
        self._access.fsync_dir(self._path(path))

    def lock(self) -> None:
        """Lock the directory for other processes while this one lives, or until `unlock`."""
        self._access.lock(self._name)

    def unlock(self) -> None:
        """Release the lock if this process holds it."""
        self._access.unlock(self._name)

    def _path(self, path: str) -> str:
        return f"{self._name}/{path}" if path else self._name


def disks(access: DiskAccess, paths: Sequence[str]) -> dict[str, "DiskAccess | DiskDirectory"]:
    """Return each data directory of a broker by its path; a single one is the whole disk."""
    places = prefixes(paths)
    return {
        path: DiskDirectory(access, place.removesuffix("/")) if place else access
        for path, place in places.items()
    }


def prefixes(paths: Sequence[str]) -> dict[str, str]:
    """Return where each data directory is on the disk: what precedes the paths in it."""
    if len(paths) == 1:
        return {paths[0]: ""}
    return {path: path.rpartition("/")[2] + "/" for path in paths}
