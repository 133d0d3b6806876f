"""Addresses of an issuer in settings: `https:` or `file:`, and only allowed ones."""

from collections.abc import Collection
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from ottla.base.errors import ErrorCode, OttlaError

_HTTPS_PORT: Final = 443


class IssuerAddress(NamedTuple):
    """A file, or a server's URL. `url` is the text of the setting; it has no secret."""

    url: str
    path: str
    host: str = ""  # Empty: a file.
    port: int = 0


def read_address(
    setting: str, url: str, allowed: Collection[str], allowed_by: str
) -> IssuerAddress:
    """The address in a setting. `allowed_by` says where `allowed` comes from.

    Raises OttlaError(INVALID_CONFIG). The list stands apart from the setting, as in Kafka
    (CVE-2025-27817): settings that come from elsewhere cannot have this process read its files or
    ask servers that only it reaches.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port or _HTTPS_PORT
    except ValueError:
        raise _bad(setting, "is no URL; write it as https://HOST/PATH or file:///PATH") from None
    if parts.username is not None or parts.password is not None:
        raise _bad(setting, "has a user or password in it: remove it")
    if url not in allowed:
        raise _bad(setting, f"{url} is not allowed: add it to {allowed_by} if it is right")
    if parts.scheme == "file" and host in ("", "localhost") and parts.path:
        return IssuerAddress(url, unquote(parts.path))
    if parts.scheme == "https" and host:
        query = f"?{parts.query}" if parts.query else ""
        return IssuerAddress(url, f"{parts.path or '/'}{query}", host, port)
    if parts.scheme == "http":
        raise _bad(setting, f"{url} has no TLS, so that answers could be forged: use https")
    raise _bad(setting, f"{url} is to be https://HOST/PATH or file:///PATH")


def _bad(setting: str, what: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_CONFIG, f"{setting} {what}")
