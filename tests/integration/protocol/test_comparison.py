"""The comparison itself: it must notice whatever can differ."""

from typing import Any

import pytest

from ottla.wire.notation import Message, array, int32, string, struct
from tests.integration.protocol.comparison import differences


class Part(Message):
    """A part."""

    number: int = int32(default=-1)


class SampleRequest(Message, api_key=-1, versions="1-3", flexible="2+"):
    """A sample."""

    name: str | None = string("1+", nullable="2+")
    parts: list[Part] = array(Part, "1-2", ignorable=True)
    part: Part = struct(Part, "2+", tag=0)


def kafka() -> dict[str, Any]:
    number = {"name": "Number", "type": "int32", "versions": "1+", "default": "-1"}
    return {
        "apiKey": -1,
        "type": "request",
        "name": "SampleRequest",
        "validVersions": "1-3",
        "flexibleVersions": "2+",
        "fields": [
            {"name": "Name", "type": "string", "versions": "1+", "nullableVersions": "2+"},
            {"name": "Parts", "type": "[]Part", "versions": "1-2", "ignorable": True},
            {"name": "Part", "type": "Part", "versions": "2+", "taggedVersions": "2+", "tag": 0},
        ],
        "commonStructs": [{"name": "Part", "versions": "1+", "fields": [number]}],
    }


def test_equal_declarations_do_not_differ() -> None:
    """A struct's versions outside of its message's are of no account."""
    assert differences(SampleRequest, kafka()) == []


@pytest.mark.parametrize(
    ("path", "key", "value"),
    [
        ((), "apiKey", 6),
        ((), "name", "OtherRequest"),
        ((), "validVersions", "1-4"),
        ((), "flexibleVersions", "none"),
        (("fields", 0), "name", "Title"),
        (("fields", 0), "type", "bytes"),
        (("fields", 0), "versions", "2+"),
        (("fields", 0), "nullableVersions", "1+"),
        (("fields", 0), "default", "x"),
        (("fields", 0), "ignorable", True),
        (("fields", 1), "type", "Part"),
        (("fields", 1), "versions", "1-3"),
        (("fields", 1), "ignorable", False),
        (("fields", 2), "tag", 1),
        (("fields", 2), "taggedVersions", "3+"),
        (("commonStructs", 0, "fields", 0), "default", "0"),
        (("commonStructs", 0, "fields", 0), "type", "int64"),
        (("commonStructs", 0, "fields", 0), "versions", "2+"),
    ],
)
def test_any_change_is_noticed(path: tuple[str | int, ...], key: str, value: object) -> None:
    """Whatever fact of Kafka's definition changes, the comparison says so."""
    changed = kafka()
    place: Any = changed
    for step in path:
        place = place[step]
    place[key] = value
    assert differences(SampleRequest, changed) != []


def test_a_missing_field_is_noticed() -> None:
    """A field that only one side has is a difference."""
    changed = kafka()
    changed["fields"].append({"name": "More", "type": "int8", "versions": "3+"})
    assert differences(SampleRequest, changed) != []
