"""Principals: the identities that ACLs name, such as `User:alice`."""

from typing import NamedTuple

from ottla.base.errors import ErrorCode, OttlaError, shortened


class Principal(NamedTuple):
    """An identity: its type, which is `User` unless an ACL names another, and its name."""

    type: str
    name: str

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


# The type of authenticated clients.
USER = "User"
# The principal of a connection that has not authenticated.
ANONYMOUS = Principal(USER, "ANONYMOUS")


def parse_principal(text: str) -> Principal:
    """Parse `User:alice`. Raises OttlaError(INVALID_REQUEST) if the colon is missing."""
    kind, colon, name = text.partition(":")
    if not colon:
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            f"Could not parse principal from `{shortened(text)}` (no colon is present separating "
            "the principal type from the principal name); write it as User:alice",
        )
    return Principal(kind, name)


def parse_super_users(text: str) -> frozenset[Principal]:
    """Parse the setting `super.users`: principals separated by semicolons. Raises OttlaError."""
    return frozenset(parse_principal(part.strip()) for part in text.split(";") if part.strip())
