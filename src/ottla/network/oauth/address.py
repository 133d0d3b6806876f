"""Checks the addresses of an OAuth issuer in settings: `https:` or `file:`, if allowed."""

from collections.abc import Collection
from typing import Final, NamedTuple
from urllib.parse import unquote, urlsplit

from ottla.base.errors import ErrorCode, OttlaError

_HTTPS_PORT: Final = 443


class IssuerAddress(NamedTuple):
    """The path of a file, or a server's URL. `url` is the setting's text, which has no secret."""

    url: str
    path: str
    host: str = ""  # Empty for a file.
    port: int = 0


def read_address(
    setting: str, url: str, allowed: Collection[str], allowed_by: str
) -> IssuerAddress:
    """Return the address in a setting. `allowed_by` names the setting that `allowed` comes from.

    Raises OttlaError(INVALID_CONFIG). As in Kafka (CVE-2025-27817), the allowed addresses are not
    part of the same settings: otherwise settings from an untrusted source could make this process
    read its files or send requests to internal servers.
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
