"""What protects this broker: its users, and how it authenticates to other brokers."""

import random
import string
from collections.abc import Callable

from broker_impl.config import BrokerConfig
from broker_impl.node import peer_security, scram_users, zk_answers, zk_paths
from broker_impl.security import scram
from broker_impl.security.credentials import Credentials
from broker_impl.zookeeper.client import ZooKeeper

_NONCE_CHARACTERS = string.ascii_letters + string.digits
_NONCE_LENGTH = 32


class Security:
    """The users of this broker, read from ZooKeeper as far as a listener needs them."""

    def __init__(
        self, config: BrokerConfig, rng: random.Random, zk: Callable[[], ZooKeeper]
    ) -> None:
        """``rng``: where clients are not trusted, one that cannot be predicted."""

        def nonce() -> str:
            return "".join(rng.choices(_NONCE_CHARACTERS, k=_NONCE_LENGTH))

        self.credentials = Credentials(config, nonce)
        self.peers = peer_security.of(config, nonce)
        self._zk = zk
        self._timeout_s = config.request_timeout_ms / 1000
        self._has_scram = any(
            mechanism in scram.HASHES
            for endpoint in config.endpoints()
            if config.has_sasl(endpoint.name)
            for mechanism in config.for_listener(endpoint.name).sasl_enabled_mechanisms
        )

    async def read(self) -> None:
        """Read the credentials of all users, if a listener uses SCRAM."""
        if self._has_scram:
            self.credentials.replace_all(await scram_users.read_all(self._zk()))

    async def user_changed(self, name: str) -> None:
        """Read the credentials of one user again; ``name``: that of the znode."""
        if self._has_scram:
            user = scram_users.user_of(name)
            self.credentials.replace(user, await scram_users.read(self._zk(), user))

    # Of request handlers.

    async def scram_users(self) -> dict[str, dict[str, scram.Credential]]:
        """Read the credentials of all users; ApiError if ZooKeeper cannot be reached."""
        return await zk_answers.in_time(scram_users.read_all(self._zk()), self._timeout_s)

    async def prepare_user(self, user: str) -> str:
        """Create the parent of all users; return the entity of the user's settings."""
        path = zk_paths.config(scram_users.USERS)
        await zk_answers.in_time(self._zk().ensure_path(path), self._timeout_s)
        return scram_users.entity(user)
