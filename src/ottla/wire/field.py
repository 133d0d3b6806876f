"""The declaration of one field, and the versions that have it."""

from typing import Any, Final
from uuid import UUID

HIGHEST_VERSION: Final = 32767
ZERO_UUID: Final = UUID(int=0)
_NEVER: Final = (1, 0)
UNSET: Final[Any] = object()
_ZERO: Final[dict[str, Any]] = {
    "boolean": False,
    "float64": 0.0,
    "string": "",
    "binary": b"",
    "uuid": ZERO_UUID,
    "records": None,
}
_RANGES: dict[str, tuple[int, int]] = {"none": _NEVER}


def version_range(text: str) -> tuple[int, int]:
    """Return (lowest, highest) for "3", "3+", "3-7" or "none"; for "none" lowest > highest."""
    found = _RANGES.get(text)
    if found is None:
        low, dash, high = text.rstrip("+").partition("-")
        highest = HIGHEST_VERSION if text.endswith("+") else int(high if dash else low)
        found = _RANGES[text] = (int(low), highest)
    return found


class Field:
    """One declared field: its kind, its versions, and its value in versions without it."""

    __slots__ = ("default", "element", "ignorable", "kind", "name", "nullable", "tag", "versions")

    def __init__(
        self,
        kind: str,
        versions: str,
        nullable: str | None,
        default: Any,
        tag: int | None,
        ignorable: bool,
        element: Any = None,
    ) -> None:
        self.name = ""
        self.kind = kind
        self.versions = version_range(versions)
        self.nullable = _NEVER if nullable is None else version_range(nullable)
        self.tag = tag
        self.ignorable = ignorable
        # For arrays the message class or the kind of the primitive; for structs the class.
        self.element: Any = element
        if default is UNSET:
            low, high = self.nullable
            always_nullable = low <= self.versions[0] and self.versions[1] <= high
            default = None if always_nullable else _ZERO.get(kind, 0)
        self.default: Any = default

    def exists(self, version: int) -> bool:
        """Return whether the field is part of `version`."""
        return self.versions[0] <= version <= self.versions[1]

    def may_be_null(self, version: int) -> bool:
        """Return whether the field may be null in `version`."""
        return self.nullable[0] <= version <= self.nullable[1]

    @property
    def starts_fresh(self) -> bool:
        """Return whether each message needs a new default object, as for a list or a struct."""
        return self.kind in {"array", "struct"} and self.default is not None
