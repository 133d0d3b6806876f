"""Opens the store that a target names."""

import re
from collections.abc import Mapping
from urllib.parse import unquote, urlsplit

from ottla.base.errors import OttlaError, WrongWords
from ottla.lake.store.local import LocalStore
from ottla.lake.store.objects import ObjectStore
from ottla.lake.store.store import FileStore
from ottla.lake.store.targets import folder_of
from ottla.lake.store.webhdfs import OPTIONS, WebHdfsStore

_OBJECTS = frozenset({"s3", "s3a", "gs", "az", "azure", "abfs", "abfss"})
_WITH_CONTAINER = frozenset({"abfs", "abfss"})  # For these schemes the container precedes an @.
_NAME_NODE_PORT = 9870
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")


def open_store(target: str, options: Mapping[str, str] | None = None) -> FileStore:
    """Return the store of `target`: a path, or a URL. Nothing is created or looked up yet.

    `options` are those of the storage library. Raises OttlaError if the target is invalid or its
    storage is not supported.
    """
    options = dict(options or {})
    scheme = _SCHEME.match(target)
    name = scheme[1].lower() if scheme else ""
    if name in _OBJECTS:
        return ObjectStore(_url(target, name), options)
    if name == "webhdfs":
        return _webhdfs(target, options)
    folder = folder_of(target)
    if options:
        raise _refused(target, f"is a folder, and takes no store option ({', '.join(options)})")
    return LocalStore(folder)


def _webhdfs(target: str, options: Mapping[str, str]) -> FileStore:
    url = _url(target, "webhdfs")
    found = urlsplit(url)
    host, _, port = found.netloc.partition(":")
    if not host or not (port or str(_NAME_NODE_PORT)).isdigit():
        raise _refused("webhdfs://…", "is not webhdfs://HOST:PORT/PATH; it takes no credentials")
    unknown = options.keys() - set(OPTIONS)
    if unknown:
        raise _refused(
            target,
            f"takes no store option {', '.join(sorted(unknown))}; it has: {', '.join(OPTIONS)}",
        )
    folder = unquote(found.path)
    return WebHdfsStore(url, host, int(port or _NAME_NODE_PORT), folder, options)


def _url(target: str, scheme: str) -> str:
    """Return the URL without slashes at its end. Raises OttlaError for an invalid store URL."""
    rest = target.partition(":")[2]
    found = urlsplit(target)
    if not rest.startswith("//") or not found.netloc:
        raise _refused(target, f"names no bucket: {scheme}://BUCKET/PATH")
    is_named = ("@" in found.netloc) is (scheme in _WITH_CONTAINER)
    # A key that contains a slash ends the netloc before its @, so look for a colon too.
    if not is_named or found.netloc.count(":") > (scheme == "webhdfs"):
        form = "CONTAINER@ACCOUNT.…" if scheme in _WITH_CONTAINER else "BUCKET"
        # Do not show the target: it may contain a secret.
        raise _refused(f"{scheme}://…", f"is not {scheme}://{form}/PATH; it takes no credentials")
    if "?" in rest or "#" in rest:
        raise _refused(target, "has a query or a fragment (in a URL ? is %3F and # is %23)")
    if _BROKEN_ESCAPE.search(rest):
        raise _refused(target, "has a % without two hexadecimal digits (in a URL % is %25)")
    path = found.path.rstrip("/")
    if "//" in path or {".", ".."} & set(path.split("/")):
        raise _refused(target, "has an empty part, . or .. in its path")
    return f"{scheme}://{found.netloc}{path}"


def _refused(target: str, why: str) -> OttlaError:
    return WrongWords(f"the target {target!r} {why}")
