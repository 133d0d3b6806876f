"""Parses bootstrap addresses: `host:port, host, [::1]:9092`."""

from collections.abc import Iterable
from typing import NamedTuple

from ottla.base.errors import ErrorCode
from ottla.client.common.errors import ClientError

DEFAULT_PORT = 9092


class Address(NamedTuple):
    """The address of a broker."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_bootstrap(bootstrap: str | Iterable[str]) -> tuple[Address, ...]:
    """Return the addresses in their order. Raises ClientError if one is invalid."""
    parts = bootstrap.split(",") if isinstance(bootstrap, str) else list(bootstrap)
    addresses = tuple(_parse_one(part.strip()) for part in parts if part.strip())
    if not addresses:
        raise ClientError(
            ErrorCode.INVALID_REQUEST, "no bootstrap address given; write it as host:port"
        )
    return addresses


def _parse_one(text: str) -> Address:
    if "@" in text:
        # Without the text, which may contain a password.
        raise ClientError(
            ErrorCode.INVALID_REQUEST,
            "an address of a broker has no user and no password; write host:port, and settings of"
            " logins into a file (--config, OTTLA_CONFIG)",
        )
    if "://" in text:
        text = text.split("://", 1)[1]
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    if not host or (port and not port.isdecimal()) or int(port or DEFAULT_PORT) > 65535:
        raise ClientError(
            ErrorCode.INVALID_REQUEST,
            f"{text!r} is not an address; write host:port, for example localhost:9092",
        )
    return Address(host, int(port or DEFAULT_PORT))
