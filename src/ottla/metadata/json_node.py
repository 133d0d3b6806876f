"""JSON in nodes of the store, and the error for a node that cannot be read."""

import json
from typing import Any

from ottla.base.errors import ErrorCode, OttlaError


def dump(held: dict[str, Any]) -> bytes:
    """The data of a node."""
    return json.dumps(held, separators=(",", ":")).encode()


def load(path: str, data: bytes) -> dict[str, Any]:
    """The object in a node's data. Raises OttlaError where it is no JSON object."""
    try:
        held = json.loads(data)
    except ValueError as error:
        raise broken(path, error) from error
    if not isinstance(held, dict):
        raise broken(path, TypeError("it is no object"))
    return held


def broken(path: str, error: Exception) -> OttlaError:
    """The error for a node that cannot be understood, and why."""
    return OttlaError(
        ErrorCode.UNKNOWN_SERVER_ERROR,
        f"the store's node {path} does not hold what it should ({error}); restore it from a "
        "copy, or delete it if its content is not needed",
    )
