"""The broker's ZooKeeper sessions, one after the other; the broker registers in each of them.

A broker exists for the cluster as long as its ephemeral znode does. The znode's czxid is the broker
epoch, by which late orders to an earlier incarnation are recognized (KIP-380). A session that
expires is replaced by a new one, in which the broker registers again.
"""

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable

from broker_impl.config import BrokerConfig
from broker_impl.errors import ConfigError
from broker_impl.node import zk_acls, zk_paths
from broker_impl.zookeeper.client import SessionState, ZooKeeper
from broker_impl.zookeeper.errors import NodeExists, SessionExpired, ZooKeeperError
from broker_impl.zookeeper.records import OPEN_ACL

LOG = logging.getLogger(__name__)

_RETRY_S = 0.2


class Session:
    """The current session, and the broker's registration in it."""

    def __init__(self, config: BrokerConfig, rng: random.Random) -> None:
        self._connect = config.zookeeper_connect
        self._timeout_ms = config.zookeeper_session_timeout_ms
        self._broker_id = config.broker_id
        self._login = zk_acls.login_of(config)
        self._acl_of = zk_acls.acl_of if config.zookeeper_set_acl else lambda path: OPEN_ACL
        self._rng = rng
        self._zk: ZooKeeper | None = None
        self.broker_epoch = -1
        self.expired = asyncio.Event()

    @property
    def zk(self) -> ZooKeeper:
        assert self._zk is not None, "a ZooKeeper session was established"
        return self._zk

    async def open(self) -> None:
        """Open a new session; waits for ZooKeeper, and tries again if a session expires."""
        while True:
            if self._zk is not None:
                await self._zk.close()
            self.expired.clear()
            self._zk = self._client()
            try:
                await self._zk.start()
            except SessionExpired:
                LOG.info("the ZooKeeper session expired before it was used")
            else:
                return

    def _client(self) -> ZooKeeper:
        def on_state(state: SessionState) -> None:
            LOG.info("ZooKeeper session: %s", state.name)
            if state is SessionState.EXPIRED and self._zk is zk:
                self.expired.set()

        zk = ZooKeeper(
            self._connect,
            session_timeout_ms=self._timeout_ms,
            rng=self._rng,
            on_state=on_state,
            login=self._login,
            acl_of=self._acl_of,
        )
        return zk

    async def prepare(self) -> None:
        """Create the persistent znodes that are the parents of all others."""
        for path in zk_paths.PERSISTENT_PATHS:
            await self.zk.ensure_path(path)

    async def register(self, znode: zk_paths.BrokerZnode) -> None:
        """Create this broker's znode under /brokers/ids.

        The znode of an earlier incarnation of this broker is removed with its session, so this
        waits for it. A znode that stays belongs to another broker with the same id: ConfigError.
        """
        path, data = zk_paths.broker(self._broker_id), zk_paths.encode(znode)
        loop = asyncio.get_running_loop()
        # The server may have granted a longer session than requested, to the earlier incarnation as
        # well.
        deadline = loop.time() + 3 * max(self._timeout_ms, self.zk.session_timeout_ms) / 1000
        while True:
            try:
                _, stat = await self.zk.create2(path, data, ephemeral=True)
            except NodeExists:
                found = await self.zk.exists(path)
                if found is not None and found.ephemeral_owner == self.zk.session_id:
                    stat = found
                elif found is not None and loop.time() > deadline:
                    raise ConfigError(
                        f"broker.id={self._broker_id}: another broker is registered with this id"
                    ) from None
                else:
                    await asyncio.sleep(_RETRY_S)
                    continue
            self.broker_epoch = stat.czxid
            LOG.info("registered as broker %d, epoch %d", self._broker_id, self.broker_epoch)
            return

    async def close(self) -> None:
        """Close the session: the broker's registration is removed at once."""
        if self._zk is not None:
            await self._zk.close()


async def persist(action: Callable[[], Awaitable[None]], *, until: asyncio.Event) -> bool:
    """Repeat an action while ZooKeeper fails; False if the event was set before it succeeded."""
    while not until.is_set():
        try:
            await action()
        except ZooKeeperError as error:
            LOG.info("ZooKeeper: %s; the broker tries again", error)
            await asyncio.sleep(_RETRY_S)
        else:
            return True
    return False
