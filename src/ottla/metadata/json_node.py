"""JSON in nodes of the store, and the error for an unreadable node."""

import json
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError


def dump(held: dict[str, Any]) -> bytes:
    """Encode the data of a node."""
    return json.dumps(held, separators=(",", ":")).encode()


def load(path: str, data: bytes) -> dict[str, Any]:
    """Decode the object in a node's data. Raises OttlaError if it is not a JSON object."""
    try:
        held = json.loads(data)
    except ValueError as error:
        raise broken(path, error) from error
    if not isinstance(held, dict):
        raise broken(path, TypeError("it is no object"))
    return held


def broken(path: str, error: Exception) -> OttlaError:
    """The error for an invalid node, with the cause."""
    return OttlaError(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        f"the store's node {path} does not hold what it should ({error}); restore it from a "
        "copy, or delete it if its content is not needed",
    )
