"""Finds the local folder that a target names, or why it is invalid. Pure, except `folder_of`.

A target is a path, or a file: URL of this machine; `stores.opening` knows the schemes of other
storage. Any other scheme is refused: a path that begins like one (`flights:2024`) would otherwise
become a folder of that name.
"""

import os
import re
from pathlib import Path
from urllib.parse import unquote_to_bytes

from ottla.base.errors import ErrorCode, OttlaError, WrongWords

# The beginning of a URL (RFC 3986, 3.1); a relative path in a URL cannot begin so (4.2).
_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*):")
_HINTS = {"hdfs": " (it reaches Hadoop's file system by HTTP: webhdfs://NAMENODE:9870/…)"}
_BROKEN_ESCAPE = re.compile(r"%(?![0-9A-Fa-f]{2})")
_SUPPORTED = (
    "choose a path (/lake/flights, ~/flights) or a file: URL (file:///lake/flights), or a URL of a "
    "store: s3://BUCKET/…, gs://BUCKET/…, az://CONTAINER/…, webhdfs://HOST:PORT/…"
)


def folder_of(target: str) -> Path:
    """Return the absolute path of the folder that `target` names here. Raises OttlaError."""
    return local_folder(target, Path(os.path.expanduser("~"))).absolute()


def local_folder(target: str, home: Path) -> Path:
    """Return the folder that `target` names, perhaps relative to the working directory.

    `home` replaces `~`. Raises OttlaError, which lists the supported forms.
    """
    if not target.strip():
        raise _refused(target, "names no folder")
    if "\0" in target:
        raise _refused(target, "holds a zero byte")
    scheme = _SCHEME.match(target)
    if scheme is not None and scheme[1].lower() == "file":
        return _of_url(target, target[scheme.end() :])
    if scheme is not None:
        raise _other_filesystem(target, scheme[1])
    first, _, rest = target.partition("/")
    if first == "~":
        return home / rest.lstrip("/")
    if first.startswith("~"):
        raise _refused(target, f"begins with {first}, the home of another user or a folder's name")
    return Path(target)


def _of_url(url: str, rest: str) -> Path:
    """Return the folder of the file: URL `url`, with `rest` after the scheme (RFC 8089)."""
    host = ""
    if rest.startswith("//"):
        host, slash, path = rest[2:].partition("/")
        rest = slash + path
    if host not in ("", "localhost"):
        raise _refused(url, f"names a folder of another machine, {host}")
    if not rest.startswith("/"):
        raise _refused(url, "has no absolute path")
    if "?" in rest or "#" in rest:
        raise _refused(url, "has a query or a fragment (in a URL ? is %3F and # is %23)")
    if _BROKEN_ESCAPE.search(rest):
        raise _refused(url, "has a % without two hexadecimal digits (in a URL % is %25)")
    path_bytes = unquote_to_bytes(rest)
    if b"\0" in path_bytes:
        raise _refused(url, "holds a zero byte")
    return Path("/" + os.fsdecode(path_bytes).lstrip("/"))


def _refused(target: str, why: str) -> OttlaError:
    return WrongWords(f"the target {target!r} {why}; {_SUPPORTED}")


def _other_filesystem(target: str, scheme: str) -> OttlaError:
    return WrongWords(
        f"{target} can't hold a table: ottla has no storage {scheme}:{_HINTS.get(scheme, '')}; "
        f"{_SUPPORTED}, and ./{target} for a folder with a colon in its name",
        ErrorCode.UNSUPPORTED_VERSION,
    )
