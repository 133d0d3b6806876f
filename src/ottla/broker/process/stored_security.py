"""Access to a cluster's stored users and ACLs, for programs that change them without a broker.

Brokers that log in to each other need their user in the store before the first of them starts.
Running brokers are notified of each change, just as if another broker had made it.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ottla.base.chance import random_bytes
from ottla.base.clock import SystemClock
from ottla.base.settings import BrokerSettings
from ottla.broker.access.acls import Acls
from ottla.broker.cluster.registration import prepare
from ottla.broker.login.users import ScramUsers
from ottla.broker.process.storage import configured_store
from ottla.coordination.interface.store import Store
from ottla.security.authorizer import Authorizer
from ottla.security.sasl.scram_keys import (
    ITERATIONS_DEFAULT,
    SALT_BYTES,
    ScramMechanism,
    is_password,
    new_credential,
)
from ottla.storage.disk.filesystem import OsFileSystem


@dataclass(frozen=True, slots=True)
class StoredSecurity:
    """The users and ACLs as of the opening of the store, and with this object's own changes."""

    users: ScramUsers
    acls: Acls

    def has_password(self, user: str, password: str) -> bool | None:
        """Return whether the password is right; None without such a user. Takes milliseconds."""
        credentials = self.users.all().get(user)
        if not credentials:
            return None
        return all(is_password(kind, held, password) for kind, held in credentials.items())

    async def set_password(
        self, user: str, password: str, iterations: int = ITERATIONS_DEFAULT
    ) -> None:
        """Create a user or change its password, for all mechanisms. Raises StoreError."""
        credentials = {
            mechanism: new_credential(mechanism, password, random_bytes(SALT_BYTES), iterations)
            for mechanism in ScramMechanism
        }
        await self.users.alter(user, credentials)


@asynccontextmanager
async def stored_security(settings: BrokerSettings) -> AsyncIterator[StoredSecurity]:
    """Open the users and ACLs in the configured store, which is created if it is missing.

    Raises StoreError. Raises OttlaError if the settings name no store.
    """
    store = await configured_store(settings, OsFileSystem())
    try:
        yield await security_in(store)
    finally:
        await store.close()


async def security_in(store: Store) -> StoredSecurity:
    """Return the users and ACLs of an open store. Raises StoreError."""
    await prepare(store)
    clock = SystemClock()
    # An empty secret and default rules suffice: no client logs in, and no request is authorized.
    found = StoredSecurity(
        ScramUsers(store, clock, b""),
        Acls(store, clock, Authorizer(frozenset(), allow_everyone_if_no_acl=False)),
    )
    await found.users.load()
    await found.acls.load()
    return found
