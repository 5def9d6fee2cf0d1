"""What protects this broker: its users, its ACLs, and how it authenticates to other brokers."""

import asyncio
import random
import string
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterable
from functools import partial

from broker_impl.api.quotas.entities import USERS
from broker_impl.config import BrokerConfig
from broker_impl.node import (
    acl_store,
    change_notices,
    config_changes,
    peer_security,
    scram_users,
    zk_answers,
    zk_paths,
)
from broker_impl.security import scram
from broker_impl.security.acls import Authorizer, Binding, Entry, Filter, Resource, super_users
from broker_impl.security.credentials import Credentials
from broker_impl.security.tls import KeyStores
from broker_impl.zookeeper.client import ZooKeeper

_NONCE_CHARACTERS = string.ascii_letters + string.digits
_NONCE_LENGTH = 32


class Security:
    """The users and ACLs of this broker, read from ZooKeeper as far as its settings need them."""

    def __init__(
        self,
        config: BrokerConfig,
        rng: random.Random,
        zk: Callable[[], ZooKeeper],
        wall_ms: Callable[[], int],
    ) -> None:
        """``rng``: where clients are not trusted, one that cannot be predicted."""

        def nonce() -> str:
            return "".join(rng.choices(_NONCE_CHARACTERS, k=_NONCE_LENGTH))

        self.credentials = Credentials(config, nonce)
        self.key_stores = KeyStores()
        """The keys of the listeners with TLS."""
        self.peers = peer_security.of(config, nonce)
        self.authorizer: Authorizer | None = None
        """None: every client may do everything."""
        if config.authorizer_class_name:
            self.authorizer = Authorizer(
                super_users(config.super_users),
                allow_without_acl=config.allow_everyone_if_no_acl_found,
            )
        self._acls_lock = asyncio.Lock()
        """Held while ACLs are read or changed: an earlier read must not undo a later change."""
        self._users_lock = asyncio.Lock()
        """Held while users are read, for the same reason."""
        self._zk = zk
        self._wall_ms = wall_ms
        self._timeout_s = config.request_timeout_ms / 1000
        self._has_scram = any(
            mechanism in scram.HASHES
            for endpoint in config.endpoints()
            if config.has_sasl(endpoint.name)
            for mechanism in config.for_listener(endpoint.name).sasl_enabled_mechanisms
        )

    # What ZooKeeper has.

    async def read(self) -> None:
        """Read all users and ACLs that the settings need; ACLs apply from here on."""
        if self._has_scram:
            async with self._users_lock:
                self.credentials.replace_all(await scram_users.read_all(self._zk()))
        if self.authorizer is not None:
            await acl_store.prepare(self._zk())
            await self._read_acls()

    async def follow(self, settings: Awaitable[None]) -> None:
        """Follow the changes of settings, and those of ACLs, until the session ends."""
        if self.authorizer is None:
            await settings
            return
        zk = self._zk()
        follow = partial(change_notices.follow, everything=self._read_acls, one=self._read_acl)
        await asyncio.gather(
            settings,
            follow(zk, acl_store.CHANGES, acl_store.announced),
            follow(zk, acl_store.EXTENDED_CHANGES, acl_store.announced_extended),
        )

    def settings_changed(self, config: BrokerConfig) -> None:
        """Read the files of key stores again; raises ConfigError, and then nothing is changed."""
        self.key_stores.reload(config, self.peers.context)

    async def user_changed(self, name: str) -> None:
        """Read the credentials of one user again; ``name``: that of the znode."""
        await self._read_user(scram_users.user_of(name))

    async def _read_user(self, user: str) -> None:
        if self._has_scram:
            async with self._users_lock:
                self.credentials.replace(user, await scram_users.read(self._zk(), user))

    async def _read_acls(self) -> None:
        assert self.authorizer is not None, "there are ACLs"
        async with self._acls_lock:
            self.authorizer.acls.replace_all(await acl_store.read_all(self._zk()))

    async def _read_acl(self, resource: Resource) -> None:
        assert self.authorizer is not None, "there are ACLs"
        async with self._acls_lock:
            self.authorizer.acls.replace(resource, await acl_store.read(self._zk(), resource))

    # For request handlers.

    async def scram_users(self) -> dict[str, dict[str, scram.Credential]]:
        """Read the credentials of all users; ApiError if ZooKeeper cannot be reached."""
        return await zk_answers.read(lambda: scram_users.read_all(self._zk()), self._timeout_s)

    async def alter_user(self, user: str, change: config_changes.Alter) -> None:
        """Change a user's settings, which apply on this broker at once; ApiError if it fails."""
        entity, now_ms = scram_users.entity(user), self._wall_ms()

        async def write(zk: ZooKeeper) -> None:
            await zk.ensure_path(zk_paths.config(USERS))
            await config_changes.alter(zk, entity, change, now_ms)

        await zk_answers.write(self._zk, write, self._timeout_s)
        await zk_answers.read(partial(self._read_user, user), self._timeout_s)

    async def add_acls(self, bindings: Iterable[Binding]) -> None:
        """Add entries, which apply on this broker at once; ApiError if ZooKeeper fails."""
        grouped: dict[Resource, set[Entry]] = defaultdict(set)
        for resource, entry in bindings:
            grouped[resource].add(entry)
        for resource, entries in grouped.items():
            await self._alter(resource, partial(frozenset[Entry].union, frozenset(entries)))

    async def remove_acls(self, wanted: Filter) -> list[Binding]:
        """Remove the entries that a filter means, and return them; ApiError if ZooKeeper fails."""
        assert self.authorizer is not None, "there are ACLs"
        removed = [each for each in self.authorizer.acls.bindings() if wanted.matches(each)]
        for resource in dict.fromkeys(each.resource for each in removed):
            await self._alter(
                resource,
                lambda before, of=resource: frozenset(  # type: ignore[misc]
                    each for each in before if not wanted.matches(Binding(of, each))
                ),
            )
        return removed

    async def _alter(self, resource: Resource, change: acl_store.Change) -> None:
        assert self.authorizer is not None, "there are ACLs"
        now_ms = self._wall_ms()
        write = partial(acl_store.alter, resource=resource, change=change, now_ms=now_ms)
        async with self._acls_lock:
            after = await zk_answers.write(self._zk, write, self._timeout_s)
            self.authorizer.acls.replace(resource, after)
