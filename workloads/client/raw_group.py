"""A process that commits for its groups both within transactions of its own and plainly, even in
the middle of one: what counts then is the later record of the two in the coordinator's log."""

from collections.abc import Mapping

from workloads.client.aio_group import GroupAioClient
from workloads.client.common import Place
from workloads.client.raw_txn import RawClient
from workloads.client.transaction import Failure


class RawGroupClient(GroupAioClient, RawClient):
    """A member or an outsider by aiokafka, whose transactions go by a producer of our own."""

    async def _commit_plainly(self, offsets: Mapping[str, Place], group: str) -> None:
        """Asked once; raises :class:`Failure`, which can abort if it was refused for certain."""
        committer = self._of(group)
        error = await committer.start()
        if error is not None:
            raise Failure(error)
        kind, error = await committer.commit(offsets)
        if error is not None:
            raise Failure(error, can_abort=kind == "fail")
