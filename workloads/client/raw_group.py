"""A process that commits for groups in transactions, and also outside of them in the middle of one.

The later record of the two in the coordinator's log takes effect.
"""

from collections.abc import Mapping

from workloads.client.aio_group import GroupAioClient
from workloads.client.common import Place
from workloads.client.raw_txn import RawClient
from workloads.client.transaction import Failure


class RawGroupClient(GroupAioClient, RawClient):
    """A member or an outsider by aiokafka, whose transactions use a :class:`RawWriter`."""

    async def _commit_plainly(self, offsets: Mapping[str, Place], group: str) -> None:
        """Commit with one request; raises :class:`Failure`.

        The transaction can then be aborted if the commit was certainly rejected.
        """
        committer = self._of(group)
        error = await committer.start()
        if error is not None:
            raise Failure(error)
        kind, error = await committer.commit(offsets)
        if error is not None:
            raise Failure(error, can_abort=kind == "fail")
