"""The notation: what a declared class is at run time."""

import copy
import pickle
from uuid import UUID

import pytest

from ottla.wire.field import HIGHEST_VERSION, version_range
from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from ottla.wire.notation import (
    Message,
    array,
    binary,
    boolean,
    float64,
    int16,
    int32,
    string,
    struct,
    uuid,
)


class Inner(Message):
    """A part."""

    number: int = int32(default=7)


class Outer(Message, api_key=3, versions="1-4", flexible="3+"):
    """A whole message with a field of each behaviour."""

    flag: bool = boolean()
    weight: float = float64("2+")
    name: str = string()
    always: str | None = string("2+", nullable="2+")
    sometimes: str | None = string(nullable="3+")
    blob: bytes = binary()
    key: UUID = uuid()
    inner: Inner = struct(Inner)
    maybe: Inner | None = struct(Inner, nullable="0+", tag=0)
    numbers: list[int] = array(int16)
    items: list[Inner] | None = array(Inner, "4+", nullable="4+")


def test_every_field_has_a_default() -> None:
    """A message is made from any subset of its fields; the others have Kafka's defaults."""
    made = Outer(name="n")
    assert made.flag is False
    assert made.weight == 0.0
    assert made.name == "n"
    assert made.always is None
    assert made.sometimes == ""
    assert made.blob == b""
    assert made.key == UUID(int=0)
    assert made.inner == Inner(number=7)
    assert made.maybe is None
    assert made.numbers == []
    assert made.items is None


def test_default_lists_and_structs_are_not_shared() -> None:
    """What one message appends to its list does not appear in another."""
    first, second = Outer(), Outer()
    first.numbers.append(1)
    first.inner.number = 8
    assert second.numbers == []
    assert second.inner.number == 7


def test_a_message_has_slots_only() -> None:
    """A mistyped attribute is an error, not a silent addition."""
    made = Outer()
    with pytest.raises(AttributeError):
        made.nmae = "x"  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        Outer(nmae="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Outer(True)  # type: ignore[call-arg]


def test_equality_is_by_class_and_fields() -> None:
    """Equal fields make equal messages of one class; another class is never equal."""

    class Other(Message):
        number: int = int32(default=7)

    assert Inner(number=1) == Inner(number=1)
    assert Inner(number=1) != Inner(number=2)
    assert Inner() != Other()
    with pytest.raises(TypeError):
        hash(Inner())


def test_messages_can_be_shown_copied_and_pickled() -> None:
    """repr names class and fields; a deep copy and a pickle are equal to their original."""
    made = MetadataRequest(topics=[MetadataRequestTopic(name="t")])
    assert repr(Inner(number=3)) == "Inner(number=3)"
    assert copy.deepcopy(made) == made
    assert pickle.loads(pickle.dumps(made)) == made


def test_version_ranges_read_as_in_kafka() -> None:
    """ "3+", "0-12", "2" and "none" are the four forms."""
    assert version_range("3+") == (3, HIGHEST_VERSION)
    assert version_range("0-12") == (0, 12)
    assert version_range("2") == (2, 2)
    low, high = version_range("none")
    assert low > high


def test_a_class_knows_its_key_and_versions() -> None:
    """Class keywords become facts of the class, without taking names from fields."""
    assert Outer.__api_key__ == 3
    assert Outer.__versions__ == (1, 4)
    assert Outer.__flexible__ == 3
    assert [field.name for field in Outer.__fields__][:3] == ["flag", "weight", "name"]
