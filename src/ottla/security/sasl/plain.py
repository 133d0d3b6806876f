"""PLAIN (RFC 4616): user and password in one message, to be sent over TLS only."""

from typing import NamedTuple

from ottla.security.sasl.failures import MalformedExchange

MECHANISM = "PLAIN"
_MESSAGE_BYTES_MAX = 4096


class PlainLogin(NamedTuple):
    """A client's user and password; `repr` leaves the password out."""

    user: str
    password: str

    def __repr__(self) -> str:
        return f"PlainLogin({self.user!r})"


def read_plain(message: bytes) -> PlainLogin:
    """Parse `[AUTHZID] NUL USER NUL PASSWORD`. Raises MalformedExchange."""
    if len(message) > _MESSAGE_BYTES_MAX:
        raise MalformedExchange(MECHANISM, f"it has {len(message)} bytes")
    try:
        parts = message.decode().split("\0")
    except UnicodeDecodeError:
        raise MalformedExchange(MECHANISM, "it is not UTF-8") from None
    if len(parts) != 3:
        raise MalformedExchange(MECHANISM, f"it has {len(parts)} parts, and 3 are needed")
    acts_as, user, password = parts
    if not user or not password:
        raise MalformedExchange(MECHANISM, "its user or its password is empty")
    if acts_as not in ("", user):
        raise MalformedExchange(MECHANISM, f"user {user!r} asks to act as another one")
    return PlainLogin(user, password)


def write_plain(user: str, password: str) -> bytes:
    """Return the message of a client."""
    return f"\0{user}\0{password}".encode()
