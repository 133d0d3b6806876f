"""The ACLs that a command lists and changes: a broker's, or those in the store with `--store`."""

from collections.abc import Awaitable, Callable, Iterable
from typing import Protocol, TypeVar

from ottla.cli.common.connect import with_admin
from ottla.cli.start.store_place import store_settings
from ottla.security.acl import Acl, AclFilter

Result = TypeVar("Result")


class ListedAcls(Protocol):
    """The ACL methods that commands use."""

    async def find(self, wanted: AclFilter) -> list[Acl]: ...

    async def create(self, acls: Iterable[Acl]) -> None: ...

    async def delete(self, wanted: AclFilter) -> list[Acl]: ...


def with_acls(
    bootstrap: str, store: str | None, work: Callable[[ListedAcls], Awaitable[Result]]
) -> Result:
    """Run `work` with the ACLs, and return its result."""
    if store is None:
        return with_admin(bootstrap, lambda admin: work(admin.acls))
    # Slow to import, and rarely used.
    from ottla.cli.acl.stored import with_stored_acls  # noqa: PLC0415

    return with_stored_acls(store_settings(store), work)
