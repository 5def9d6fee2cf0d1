"""Who may do what with the znodes of a cluster, with ``zookeeper.set.acl`` as in Kafka.

Only the brokers, which all authenticate as the same user, may change znodes. Everyone may read
them, except those that hold credentials (``ZkData.defaultAcls`` in Kafka).
"""

from typing import Final

from broker_impl.config import BrokerConfig
from broker_impl.zookeeper.digest_md5 import Login
from broker_impl.zookeeper.records import Acl, Id, Perm

SENSITIVE: Final = ("/config/users", "/delegation_token")
"""The roots of the znodes that only the brokers may read."""
_CREATOR: Final = Acl(Perm.ALL, Id("auth", ""))
_READERS: Final = Acl(Perm.READ, Id("world", "anyone"))


def acl_of(path: str) -> tuple[Acl, ...]:
    """Return the ACL with which a broker creates a znode."""
    is_sensitive = any(path == root or path.startswith(f"{root}/") for root in SENSITIVE)
    return (_CREATOR,) if is_sensitive else (_CREATOR, _READERS)


def login_of(config: BrokerConfig) -> Login | None:
    """Return the user as which a broker authenticates to ZooKeeper; None: it does not."""
    if config.zookeeper_login is None:
        return None
    return Login(config.zookeeper_login.username, config.zookeeper_login.password)
