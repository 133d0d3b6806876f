"""Compares one of our declarations with Kafka's definition, field by field, version by version."""

import re
from typing import Any

from ottla.wire.api import FIRST_PRIVATE_TAG
from ottla.wire.field import HIGHEST_VERSION, ZERO_UUID, Field, version_range
from ottla.wire.notation import Message

_KINDS = {"bool": "boolean", "bytes": "binary"}
_PRIMITIVES = {
    "bool", "bytes", "float64", "int16", "int32", "int64", "int8", "records", "string", "uint16",
    "uuid",
}  # fmt: skip
_ZEROS: dict[str, Any] = {
    "bool": False, "bytes": b"", "float64": 0.0, "records": None, "string": "", "uuid": ZERO_UUID,
}  # fmt: skip


def snake(name: str) -> str:
    """`LogAppendTimeMs` as an attribute of ours is named."""
    name = re.sub(r"([A-Z]+)([A-Z][a-z])", r"\1_\2", name)
    return re.sub(r"([a-z0-9])([A-Z])", r"\1_\2", name).lower()


def differences(ours: type[Message], kafka: dict[str, Any]) -> list[str]:
    """Return in words whatever differs; an empty list where all is equal."""
    return _Comparison(ours, kafka).run()


class _Comparison:
    def __init__(self, ours: type[Message], kafka: dict[str, Any]) -> None:
        self.ours = ours
        self.kafka = kafka
        self.shared = {each["name"]: each["fields"] for each in kafka.get("commonStructs", [])}
        self.found: list[str] = []
        self.valid = self.own = (0, 0)

    def check(self, where: str, what: str, ours: object, kafka: object) -> None:
        if ours != kafka or type(ours) is not type(kafka):
            self.found.append(f"{where}: {what} {ours}, Kafka {kafka}")

    def run(self) -> list[str]:
        name = self.ours.__name__
        self.check(name, "name", name, self.kafka["name"])
        valid, own = version_range(self.kafka["validVersions"]), self.ours.__versions__
        self.check(name, "valid versions", own, valid)
        # The keys of stored records share no version with Kafka's.
        shared = max(valid[0], own[0]), min(valid[1], own[1])
        if shared[0] <= shared[1]:
            valid = own = shared
        self.valid, self.own = valid, own
        low, high = version_range(self.kafka["flexibleVersions"])
        never = HIGHEST_VERSION + 1
        self.check(name, "flexible from", self.ours.__flexible__, low if low <= high else never)
        if self.kafka["type"] in {"request", "response"}:
            self.check(name, "api key", self.ours.__api_key__, self.kafka["apiKey"])
        self.fields(name, self.ours, self.kafka["fields"], valid)
        return self.found

    def fields(
        self, where: str, ours: Any, kafka: list[dict[str, Any]], valid: tuple[int, int]
    ) -> None:
        """Compare the fields that exist in a version of `valid`, those of the struct around them.

        A class of ours may stand for two of Kafka's that share no version.
        """
        private = [f for f in ours.__fields__ if (f.tag or 0) >= FIRST_PRIVATE_TAG]
        self.found += [f"{where}.{f.name}: Ottla's own, tag {f.tag}" for f in private]
        kafka = [field for field in kafka if _within(_versions(field), valid)]
        shared = [f for f in ours.__fields__ if f not in private and _within(f.versions, valid)]
        names = [field.name for field in shared]
        self.check(where, "fields", names, [snake(field["name"]) for field in kafka])
        for mine, theirs in zip(shared, kafka, strict=False):
            self.field(f"{where}.{mine.name}", mine, theirs, valid)

    def field(self, where: str, ours: Field, kafka: dict[str, Any], valid: tuple[int, int]) -> None:
        own = self.own if valid == self.valid else valid
        exists = _versions(kafka)
        tagged = version_range(kafka.get("taggedVersions", "none"))
        nullable = version_range(kafka.get("nullableVersions", "none"))
        present = _within(exists, valid)
        self.check(where, "exists in", _within(ours.versions, own), present)
        self.check(
            where,
            "nullable in",
            [v for v in _within(ours.nullable, valid) if ours.exists(v)],
            [v for v in _within(nullable, valid) if v in present],
        )
        ours_tagged = present if ours.tag is not None else []
        self.check(where, "tagged in", ours_tagged, _within(tagged, valid))
        self.check(where, "tag", ours.tag, kafka.get("tag"))
        ignorable = kafka.get("ignorable", False) in {True, "true"}
        self.check(where, "ignorable", ours.ignorable, ignorable)
        self.kind(where, ours, kafka, valid)
        always_nullable = bool(present) and all(v in _within(nullable, valid) for v in present)
        self.check(where, "default", _plain(ours), _default(kafka, always_nullable))

    def kind(self, where: str, ours: Field, kafka: dict[str, Any], valid: tuple[int, int]) -> None:
        theirs = kafka["type"]
        element = theirs.removeprefix("[]")
        is_array = element != theirs
        if element in _PRIMITIVES:
            element = _KINDS.get(element, element)
            expected = ("array", element) if is_array else (element, None)
            self.check(where, "type", (ours.kind, ours.element), expected)
            return
        self.check(where, "type", ours.kind, "array" if is_array else "struct")
        # A part named alike in request and response has the suffix in the response; the parts of
        # the consumer protocol's two structs carry the name of their struct.
        names = {element, element + "Response", _struct_prefix(self.kafka["name"]) + element}
        if ours.element.__name__ not in names:
            self.check(where, "struct", ours.element.__name__, element)
        low, high = _versions(kafka)
        inside = max(low, valid[0]), min(high, valid[1])
        self.fields(where, ours.element, kafka.get("fields") or self.shared[element], inside)


def _struct_prefix(message: str) -> str:
    return message.removeprefix("ConsumerProtocol")


def _versions(kafka: dict[str, Any]) -> tuple[int, int]:
    return version_range(kafka.get("versions") or kafka["taggedVersions"])


def _within(versions: tuple[int, int], valid: tuple[int, int]) -> list[int]:
    return list(range(max(versions[0], valid[0]), min(versions[1], valid[1]) + 1))


def _plain(field: Field) -> object:
    return "fresh" if field.starts_fresh else field.default


def _default(kafka: dict[str, Any], always_nullable: bool) -> object:
    """Kafka's default; where it states none, None for what is always nullable, as ours."""
    kind = kafka["type"]
    given = kafka.get("default")
    if given == "null" or (given is None and always_nullable):
        return None
    if kind.startswith("[]") or (kind not in _PRIMITIVES):
        return "fresh"
    if given is None:
        return _ZEROS.get(kind, 0)
    if kind == "bool":
        return str(given).lower() == "true"
    if kind == "string":
        return given
    return float(given) if kind == "float64" else int(str(given), 0)
