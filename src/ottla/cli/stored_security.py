"""Changes ACLs and users in the store itself, for commands with `--store`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from pathlib import Path
from typing import TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings, read_broker_settings
from ottla.broker.process.stored_security import StoredSecurity, stored_security
from ottla.cli.start.plan import STORE_FILE, unit_of
from ottla.client.admin.credentials import UserDescription
from ottla.coordination.connect import KINDS
from ottla.security.acl import Acl, AclFilter

Result = TypeVar("Result")


def with_store(place: str, work: Callable[[StoredSecurity], Awaitable[Result]]) -> Result:
    """Run `work` with the store that `--store` names, and return the result of `work`."""

    async def run() -> Result:
        async with stored_security(store_settings(place)) as stored:
            return await work(stored)

    return asyncio.run(run())


class StoredAcls:
    """Lists and changes ACLs without a broker."""

    def __init__(self, stored: StoredSecurity) -> None:
        self._acls = stored.acls

    async def find(self, wanted: AclFilter) -> list[Acl]:
        """Return the ACLs that match a filter."""
        return self._acls.matching(wanted)

    async def create(self, acls: Iterable[Acl]) -> None:
        """Add ACLs, which must be valid. Raises StoreError."""
        await self._acls.create(acls)

    async def delete(self, wanted: AclFilter) -> list[Acl]:
        """Delete the ACLs that match a filter, and return them. Raises StoreError."""
        found = self._acls.matching(wanted)
        await self._acls.delete(found)
        return found


class StoredUsers:
    """Lists and changes users without a broker."""

    def __init__(self, stored: StoredSecurity) -> None:
        self._stored = stored

    async def find(self, names: Iterable[str] | None = None) -> list[UserDescription]:
        """Return the users with these names that exist; without names, all users."""
        known = self._stored.users.all()
        return [
            UserDescription(name, {kind: each.iterations for kind, each in held.items()})
            for name, held in known.items()
            if names is None or name in names
        ]

    async def set_password(self, name: str, password: str) -> None:
        """Create a user, or set another password. Raises OttlaError."""
        if not name:
            raise OttlaError(ErrorCode.UNACCEPTABLE_CREDENTIAL, "a user's name must not be empty")
        await self._stored.set_password(name, password)

    async def remove(self, name: str) -> None:
        """Remove all credentials of a user. Raises OttlaError."""
        held = self._stored.users.all().get(name)
        if held is None:
            raise OttlaError(ErrorCode.RESOURCE_NOT_FOUND, f"remove user {name}: there is none")
        await self._stored.users.alter(name, dict.fromkeys(held))


_OF_ONE_BROKER = "ottla-store.sqlite"
# The broker settings that say where its store is.
_PLACES = ("log.dirs", "log.dir", "coordination.connect")


def store_settings(place: str) -> BrokerSettings:
    """Return settings that name the store of `place`. Raises OttlaError if it names no store."""
    scheme, colon, _ = place.partition(":")
    if colon and any(scheme == kind.scheme and kind.outlives_process for kind in KINDS):
        return BrokerSettings({"coordination.connect": place})
    path = Path(place).absolute()
    if path.is_dir():
        several = path / STORE_FILE
        if several.exists():
            return BrokerSettings({"coordination.connect": f"sqlite://{several}"})
        if not (path / _OF_ONE_BROKER).exists() and any(path.iterdir()):
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"--store {place}: it holds no store of `ottla start`; name its --data, the address"
                " of the store, or a broker's settings file",
            )
        return BrokerSettings({"log.dirs": str(path)})
    if not path.exists():
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"--store {place}: No such file or directory; name a store's address"
            " (sqlite:///path/of/the/file, zookeeper://host:port), a broker's settings file, or the"
            " --data of `ottla start`",
        )
    settings = read_broker_settings(path)
    if settings.text("cores"):
        plan = unit_of(settings)
        return BrokerSettings(plan.settings(plan.numbers[0]))
    if settings.static.keys().isdisjoint(_PLACES):
        # The default of Kafka, /tmp/kafka-logs, would be a new store, which no broker uses.
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"--store {place}: the file names no store; set log.dirs or coordination.connect in it"
            " as the broker has it, or name the --data of `ottla start`",
        )
    return settings
