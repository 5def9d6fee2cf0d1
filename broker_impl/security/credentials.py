"""The users that this broker knows: those of PLAIN, and the SCRAM credentials of ZooKeeper."""

from collections.abc import Callable, Mapping

from broker_impl.config import BrokerConfig
from broker_impl.security import scram


class Credentials:
    """Passwords of the configuration, and credentials that are replaced as ZooKeeper changes."""

    def __init__(self, config: BrokerConfig, nonce: Callable[[], str]) -> None:
        """``nonce``: returns random printable characters without a comma."""
        self.nonce = nonce
        self._config = config
        self._scram: dict[str, dict[str, scram.Credential]] = {}
        """User to mechanism to credential."""

    def password(self, listener: str, user: str) -> str | None:
        """Return the password of a user of PLAIN on this listener."""
        return self._config.login(listener, "PLAIN").users.get(user)

    def of_user(self, user: str) -> Mapping[str, scram.Credential]:
        """Return the SCRAM credentials of a user, by mechanism."""
        return self._scram.get(user, {})

    def users(self) -> list[str]:
        """Return the names of all users with SCRAM credentials, sorted."""
        return sorted(self._scram)

    def replace_all(self, users: Mapping[str, Mapping[str, scram.Credential]]) -> None:
        """Replace the credentials of all users."""
        self._scram = {name: dict(known) for name, known in users.items() if known}

    def replace(self, user: str, known: Mapping[str, scram.Credential]) -> None:
        """Replace the credentials of one user."""
        if known:
            self._scram[user] = dict(known)
        else:
            self._scram.pop(user, None)
