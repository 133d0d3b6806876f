"""JSON of tokens: objects in which no name stands twice."""

import json


def read_object(content: bytes) -> dict[str, object] | None:
    """The object; None where there is none.

    Of a name that stands twice another reader may believe the first value: such objects are refused
    (RFC 7519, 4), as by Kafka.
    """
    try:
        found = json.loads(content.decode(), object_pairs_hook=_unique)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found
