"""JSON files that carry the SHA-256 of their own bytes, so that any flipped bit is found.

    {
     "format": 3,
     "sha256": "<64 hexadecimal digits>",
     ... the fields ...
    }

The digest is that of the whole file with 64 zeros in its own place. It guards against damage and
hasty edits, not against a program that computes it anew.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

FORMAT = 3
_FORMAT_LINE = re.compile(rb'\{\n "format": (\d+),\n')
_OPENING = b'{\n "format": %d,\n "sha256": "' % FORMAT
_OPENING_SIZE = len(_OPENING)
_BLANK = b"0" * 64


class SealBroken(ValueError):
    """Raised if the bytes are not the ones that were written, or are of another format."""


def seal(fields: Mapping[str, Any]) -> bytes:
    """Return the file that holds `fields`."""
    blank = json.dumps({"format": FORMAT, "sha256": _BLANK.decode(), **fields}, indent=1)
    content = blank.encode() + b"\n"
    return _with_digest(content, hashlib.sha256(content).hexdigest().encode())


def unseal(content: bytes) -> tuple[dict[str, Any], str]:
    """Return the fields and the digest of a file. Raises SealBroken."""
    found = _FORMAT_LINE.match(content)
    if found and int(found[1]) != FORMAT:
        raise SealBroken(
            f"is of format {int(found[1])}, which this version of ottla does not know: use a "
            "later version, if one wrote it"
        )
    digest = content[_OPENING_SIZE : _OPENING_SIZE + len(_BLANK)]
    actual = hashlib.sha256(_with_digest(content, _BLANK)).hexdigest()
    if not content.startswith(_OPENING) or digest != actual.encode():
        raise SealBroken("can't be read: its bytes do not match the SHA-256 in it")
    fields: dict[str, Any] = json.loads(content)
    del fields["format"], fields["sha256"]
    return fields, actual


def _with_digest(content: bytes, digest: bytes) -> bytes:
    return content[:_OPENING_SIZE] + digest + content[_OPENING_SIZE + len(digest) :]
