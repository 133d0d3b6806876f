"""The rules for topic names."""

from collections.abc import Iterable

from ottla.base.errors import ErrorCode, OttlaError

_NAME_LENGTH_MAX = 249
_LEGAL = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def check_topic_name(name: str) -> None:
    """Raise OttlaError(INVALID_TOPIC_EXCEPTION) with the reason if `name` is invalid."""
    if not name:
        complaint = "the empty string is not allowed"
    elif name in {".", ".."}:
        complaint = f"'{name}' is not allowed"
    elif len(name) > _NAME_LENGTH_MAX:
        complaint = (
            f"the length of '{name[:_NAME_LENGTH_MAX]}…' is {len(name)}, longer than "
            f"the most allowed, {_NAME_LENGTH_MAX}"
        )
    elif not _LEGAL.issuperset(name):
        complaint = (
            f"'{name}' contains one or more characters other than ASCII alphanumerics, "
            "'.', '_' and '-'"
        )
    else:
        return
    raise OttlaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"Topic name is invalid: {complaint}")


def check_no_collision(name: str, existing: Iterable[str]) -> None:
    """Refuse a name that differs from an existing one only in `.` and `_`.

    Metrics replace `.` by `_`, so both topics would have the same metric names. Raises
    OttlaError(INVALID_TOPIC_EXCEPTION).
    """
    if "." not in name and "_" not in name:
        return
    folded = name.replace(".", "_")
    for other in existing:
        if other != name and other.replace(".", "_") == folded:
            raise OttlaError(
                ErrorCode.INVALID_TOPIC_EXCEPTION,
                f"Topic '{name}' collides with existing topic: {other}; '.' and '_' count as the "
                "same, choose another name",
            )
