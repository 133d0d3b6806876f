"""ACLs in the store itself, with the methods of a client's `admin.acls`."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from typing import TypeVar

from ottla.base.settings import BrokerSettings
from ottla.broker.process.stored_security import StoredSecurity, stored_security
from ottla.security.acl import Acl, AclFilter

Result = TypeVar("Result")


class StoredAcls:
    """Lists and changes ACLs without a broker."""

    def __init__(self, stored: StoredSecurity) -> None:
        self._acls = stored.acls

    async def find(self, wanted: AclFilter) -> list[Acl]:
        """The ACLs that match a filter."""
        return self._acls.matching(wanted)

    async def create(self, acls: Iterable[Acl]) -> None:
        """Add ACLs that were checked already. Raises StoreError."""
        await self._acls.create(acls)

    async def delete(self, wanted: AclFilter) -> list[Acl]:
        """Delete the ACLs that match a filter, and return them. Raises StoreError."""
        found = self._acls.matching(wanted)
        await self._acls.delete(found)
        return found


def with_stored_acls(
    settings: BrokerSettings, work: Callable[[StoredAcls], Awaitable[Result]]
) -> Result:
    """Run `work` with the ACLs in the store of `settings`, and return its result."""

    async def main() -> Result:
        async with stored_security(settings) as stored:
            return await work(StoredAcls(stored))

    return asyncio.run(main())
