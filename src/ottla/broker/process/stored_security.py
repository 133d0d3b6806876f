"""The users and ACLs of a cluster in its store, for programs that change them without a broker.

Before the first start there is no broker to ask, and brokers that log in to each other need their
user by then. Brokers that run are notified of each change, as of one by another broker.
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
    """What was in the store when it was opened, and what is changed by these objects."""

    users: ScramUsers
    acls: Acls

    def has_password(self, user: str, password: str) -> bool | None:
        """Whether it is the user's; None where there is no such user. Takes milliseconds."""
        credentials = self.users.all().get(user)
        if not credentials:
            return None
        return all(is_password(kind, held, password) for kind, held in credentials.items())

    async def set_password(
        self, user: str, password: str, iterations: int = ITERATIONS_DEFAULT
    ) -> None:
        """Make a user, or give it another password, for all mechanisms. Raises StoreError."""
        credentials = {
            mechanism: new_credential(mechanism, password, random_bytes(SALT_BYTES), iterations)
            for mechanism in ScramMechanism
        }
        await self.users.alter(user, credentials)


@asynccontextmanager
async def stored_security(settings: BrokerSettings) -> AsyncIterator[StoredSecurity]:
    """Those of the store that a broker's settings name, which is made if it is missing.

    Raises StoreError; OttlaError where the settings name no store.
    """
    store = await configured_store(settings, OsFileSystem())
    try:
        yield await security_in(store)
    finally:
        await store.close()


async def security_in(store: Store) -> StoredSecurity:
    """Those of an open store. Raises StoreError."""
    await prepare(store)
    clock = SystemClock()
    # Nothing logs in here, and nothing is authorized.
    found = StoredSecurity(
        ScramUsers(store, clock, b""),
        Acls(store, clock, Authorizer(frozenset(), allow_everyone_if_no_acl=False)),
    )
    await found.users.load()
    await found.acls.load()
    return found
