"""Finds the store for a target, which is a path, a file: URL, or the URL of a store.

Any other scheme is an error, because it would otherwise be taken as the name of a folder, as in
`flights:2024`.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from urllib.parse import unquote_to_bytes, urlsplit

from ottla.base.errors import ErrorCode, OttlaError, WrongWords
from ottla.lake.store.local import LocalStore
from ottla.lake.store.objects import ObjectStore
from ottla.lake.store.store import FileStore

# The scheme of a URL (RFC 3986, 3.1). A relative path in a URL cannot begin like this (4.2).
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HADOOP = frozenset({"hdfs", "webhdfs", "swebhdfs"})
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SUPPORTED = (
    "choose a path (/lake/flights, ~/flights) or a file: URL (file:///lake/flights), or a URL of a "
    "store: s3://BUCKET/…, gs://BUCKET/…, az://CONTAINER/…"
)


def folder_of(target: str) -> Path:
    """Return the absolute path of the folder `target` on this machine. Raises OttlaError."""
    return local_folder(target, Path(os.path.expanduser("~"))).absolute()


def local_folder(target: str, home: Path) -> Path:
    """Return the folder of `target`, which may be relative to the working directory.

    `home` replaces `~`. Raises OttlaError that lists the supported forms.
    """
    if not target.strip():
        raise _no_folder(target, "names no folder")
    if "\0" in target:
        raise _no_folder(target, "holds a zero byte")
    scheme = _SCHEME.match(target)
    if scheme is not None and scheme[1].lower() == "file":
        return _of_url(target, target[scheme.end() :])
    if scheme is not None:
        raise _other_filesystem(target, scheme[1])
    first, _, rest = target.partition("/")
    if first == "~":
        return home / rest.lstrip("/")
    if first.startswith("~"):
        raise _no_folder(
            target, f"begins with {first}, the home of another user or a folder's name"
        )
    return Path(target)


def _of_url(url: str, rest: str) -> Path:
    """Return the folder of a file: URL (RFC 8089). `rest` is the part after the scheme."""
    host = ""
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        rest = slash + path
    if host not in ("", "localhost"):
        raise _no_folder(url, f"names a folder of another machine, {host}")
    if not rest.startswith("/"):
        raise _no_folder(url, "has no absolute path")
    problem = _escape_problem(rest)
    if problem:
        raise _no_folder(url, problem)
    path_bytes = unquote_to_bytes(rest)
    if b"\0" in path_bytes:
        raise _no_folder(url, "holds a zero byte")
    return Path("/" + os.fsdecode(path_bytes).lstrip("/"))


def _escape_problem(rest: str) -> str:
    """Return the problem of a URL's part after the scheme; empty if there is none."""
    if "?" in rest or "#" in rest:
        return "has a query or a fragment (in a URL ? is %3F and # is %23)"
    if _BROKEN_ESCAPE.search(rest):
        return "has a % without two hexadecimal digits (in a URL % is %25)"
    return ""


def _no_folder(target: str, why: str) -> OttlaError:
    return _no_url(target, f"{why}; {_SUPPORTED}")


def _other_filesystem(target: str, scheme: str) -> OttlaError:
    problem = f"{target} can't hold a table: ottla has no storage {scheme}:"
    if scheme.lower() in _HADOOP:
        # No library creates a file there only if it is absent.
        remedy = (
            "choose a path of a file system that all workers share (/lake/flights), or a store "
            "with the API of S3, which Hadoop's Ozone has (s3://BUCKET/…)"
        )
    else:
        remedy = f"{_SUPPORTED}, and ./{target} for a folder with a colon in its name"
    return WrongWords(f"{problem}; {remedy}", ErrorCode.UNSUPPORTED_VERSION)


_OBJECTS = frozenset({"s3", "s3a", "gs", "az", "azure", "abfs", "abfss"})
_WITH_CONTAINER = frozenset({"abfs", "abfss"})  # For these schemes the container precedes an @.


def open_store(target: str, options: Mapping[str, str] | None = None) -> FileStore:
    """Return the store of `target`: a path, or a URL. Nothing is created or looked up yet.

    `options` are passed to the storage library. Raises OttlaError if the target is invalid or its
    storage is not supported.
    """
    options = dict(options or {})
    scheme = _SCHEME.match(target)
    name = scheme[1].lower() if scheme else ""
    if name in _OBJECTS:
        return ObjectStore(_url(target, name), options)
    folder = folder_of(target)
    if options:
        raise _no_url(target, f"is a folder, and takes no store option ({', '.join(options)})")
    return LocalStore(folder)


def _url(target: str, scheme: str) -> str:
    """Return the URL without final slashes. Raises OttlaError for an invalid URL of a store."""
    rest = target.partition(":")[2]
    found = urlsplit(target)
    if not rest.startswith("//") or not found.netloc:
        raise _no_url(target, f"names no bucket: {scheme}://BUCKET/PATH")
    is_named = ("@" in found.netloc) is (scheme in _WITH_CONTAINER)
    # A key that contains a slash ends the netloc before its @, so look for a colon too.
    if not is_named or ":" in found.netloc:
        form = "CONTAINER@ACCOUNT.…" if scheme in _WITH_CONTAINER else "BUCKET"
        # Do not show the target: it may contain a secret.
        raise _no_url(f"{scheme}://…", f"is not {scheme}://{form}/PATH; it takes no credentials")
    problem = _escape_problem(rest)
    if problem:
        raise _no_url(target, problem)
    path = found.path.rstrip("/")
    if "//" in path or {".", ".."} & set(path.split("/")):
        raise _no_url(target, "has an empty part, . or .. in its path")
    return f"{scheme}://{found.netloc}{path}"


def _no_url(target: str, why: str) -> OttlaError:
    return WrongWords(f"the target {target!r} {why}")
