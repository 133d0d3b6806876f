"""OAUTHBEARER (RFC 7628): a token in one message. Judging the token is another's work."""

import json
import re
from collections.abc import Mapping

from ottla.security.sasl.failing import MalformedExchange

MECHANISM = "OAUTHBEARER"
TOKEN_BYTES_MAX = 16 << 10
# What a client answers to a server's error message, after which the exchange fails.
CLIENT_GIVES_UP = b"\x01"
_MESSAGE_BYTES_MAX = TOKEN_BYTES_MAX + 4096
_HEADER = re.compile(r"n,(?:a=([^,]*))?,")
_TOKEN = re.compile(r"bearer ([A-Za-z0-9\-._~+/]+=*)", re.IGNORECASE)


def read_bearer(message: bytes) -> tuple[str, str, Mapping[str, str]]:
    """The token, the authorization id ('' where none is named) and the extensions.

    Raises MalformedExchange.
    """
    if len(message) > _MESSAGE_BYTES_MAX:
        raise MalformedExchange(MECHANISM, f"it has {len(message)} bytes")
    try:
        header, *pairs, end, last = message.decode().split("\x01")
    except (UnicodeDecodeError, ValueError):
        raise MalformedExchange(MECHANISM, "it is not made as RFC 7628 says") from None
    found = _HEADER.fullmatch(header)
    if found is None or end or last:
        raise MalformedExchange(MECHANISM, "it is not made as RFC 7628 says")
    fields = dict(_pair(pair) for pair in pairs)
    token = _TOKEN.fullmatch(fields.pop("auth", ""))
    if token is None or len(token[1]) > TOKEN_BYTES_MAX:
        raise MalformedExchange(MECHANISM, "it has no bearer token, or too long a one")
    return token[1], found[1] or "", fields


def write_bearer(token: str, extensions: Mapping[str, str]) -> bytes:
    """The message of a client."""
    more = "".join(f"{name}={value}\x01" for name, value in extensions.items())
    return f"n,,\x01auth=Bearer {token}\x01{more}\x01".encode()


def write_refusal(status: str, scope: str | None) -> bytes:
    """What a server says to a token it does not take, such as `invalid_token`."""
    said = {"status": status} if scope is None else {"status": status, "scope": scope}
    return json.dumps(said).encode()


def _pair(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name.isascii() or not name.isalpha():
        raise MalformedExchange(MECHANISM, "it is not made of NAME=VALUE")
    return name, value
