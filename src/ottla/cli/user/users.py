"""The users that a command lists and changes: a broker's, or those in the store with `--store`."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol, TypeVar

from ottla.cli.common.connect import with_admin
from ottla.cli.start.store_place import store_settings
from ottla.client.admin.users import UserDescription

Result = TypeVar("Result")


class ListedUsers(Protocol):
    """The user methods that commands use."""

    async def find(self, names: Sequence[str] | None = None) -> list[UserDescription]: ...

    async def set_password(self, name: str, password: str) -> None: ...

    async def remove(self, name: str) -> None: ...


def with_users(
    bootstrap: str, store: str | None, work: Callable[[ListedUsers], Awaitable[Result]]
) -> Result:
    """Run `work` with the users, and return its result."""
    if store is None:
        return with_admin(bootstrap, lambda admin: work(admin.users))
    # Slow to import, and rarely used.
    from ottla.cli.user.stored import with_stored_users  # noqa: PLC0415

    return with_stored_users(store_settings(store), work)
