"""The operations of a multi as values, and how a multi fails: all are executed, or none."""

from collections.abc import Sequence
from dataclasses import dataclass

from broker_impl.zookeeper.errors import (
    RuntimeInconsistency,
    ZooKeeperError,
)
from broker_impl.zookeeper.records import (
    Stat,
)


@dataclass(frozen=True, slots=True)
class Create:
    """An operation of a multi: create a node. Its result is the path."""

    path: str
    data: bytes = b""
    ephemeral: bool = False
    sequential: bool = False


@dataclass(frozen=True, slots=True)
class SetData:
    """An operation of a multi: set a node's data. Its result is the Stat."""

    path: str
    data: bytes
    version: int = -1


@dataclass(frozen=True, slots=True)
class Delete:
    """An operation of a multi: delete a node. Its result is None."""

    path: str
    version: int = -1


@dataclass(frozen=True, slots=True)
class Check:
    """An operation of a multi: require a node's version. Its result is None."""

    path: str
    version: int


MultiResult = str | Stat | None


class MultiFailed(ZooKeeperError):
    """A multi was rejected, and none of its operations was executed.

    ``error`` is the reason, ``index`` the operation that failed, and ``errors`` has one entry per
    operation: None before the failing one, ``RuntimeInconsistency`` after it.
    """

    def __init__(self, errors: Sequence[ZooKeeperError | None]) -> None:
        self.errors = list(errors)
        self.index, self.error = next(
            (index, error)
            for index, error in enumerate(errors)
            if error is not None and not isinstance(error, RuntimeInconsistency)
        )
        super().__init__(f"operation {self.index}: {type(self.error).__name__} {self.error}")
