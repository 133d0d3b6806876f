"""Users in the store itself, with the methods of a client's `admin.users`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings
from ottla.broker.process.stored_security import StoredSecurity, stored_security
from ottla.client.admin.users import UserDescription

Result = TypeVar("Result")


class StoredUsers:
    """Lists and changes users without a broker."""

    def __init__(self, stored: StoredSecurity) -> None:
        self._stored = stored

    async def find(self, names: Iterable[str] | None = None) -> list[UserDescription]:
        """The existing users with these names; all users without names."""
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


def with_stored_users(
    settings: BrokerSettings, work: Callable[[StoredUsers], Awaitable[Result]]
) -> Result:
    """Run `work` with the users in the store of `settings`, and return its result."""

    async def main() -> Result:
        async with stored_security(settings) as stored:
            return await work(StoredUsers(stored))

    return asyncio.run(main())
