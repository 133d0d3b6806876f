"""Protobuf into typed columns."""

import base64
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from hypothesis import given, settings
from hypothesis import strategies as st

from ottla.lake.model.decode_spec import Column, Format
from ottla.lake.model.layout import columns_for
from ottla.lake.rows.protobuf_values import ProtobufReader, compiled_file, compiled_texts
from ottla.lake.rows.value_reader import BadValue, SchemaUnusable, message_indexes
from tests.unit.lake.decode.batches import decoded, errors, lists

PROTO = """
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
import "google/protobuf/wrappers.proto";
import "google/protobuf/struct.proto";
import "common/money.proto";
message Order {
  enum State { NEW = 0; PAID = 1; }
  message Line { string sku = 1; uint32 count = 2; }
  int64 id = 1;
  optional string note = 2;
  repeated Line lines = 3;
  map<int32, double> scores = 4;
  State state = 5;
  google.protobuf.Timestamp at = 6;
  google.protobuf.Int64Value maybe = 7;
  google.protobuf.Struct free = 8;
  uint64 big = 9;
  oneof pay { Money money = 10; bytes token = 11; }
}
message Loop { Loop next = 1; }
"""
MONEY = 'syntax = "proto3"; package shop; message Money { sint64 cents = 1; }'
TEXTS = {"order.proto": PROTO, "common/money.proto": MONEY}


@pytest.fixture(scope="module")
def descriptors() -> bytes:
    return compiled_texts(TEXTS, "order.proto")


def message_class(descriptors: bytes, name: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for file in descriptor_pb2.FileDescriptorSet.FromString(descriptors).file:
        pool.Add(file)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def columns_in(descriptors: bytes, name: str) -> tuple[Column, ...]:
    kind = ProtobufReader(descriptors, name).type
    assert kind is not None
    return columns_for(kind, "value", set())


def how(descriptors: bytes, name: str) -> Format:
    text = base64.b64encode(descriptors).decode()
    return Format("protobuf", columns_in(descriptors, name), schema=text, message=name)


def test_a_message_stands_in_the_columns(descriptors: bytes) -> None:
    """Nested, repeated, maps, enums, oneofs, presence, and what Google's own messages mean."""
    order = message_class(descriptors, "shop.Order")
    full = json_format.ParseDict(
        {
            "id": "7",
            "note": "",
            "lines": [{"sku": "a", "count": 4294967295}, {}],
            "scores": {"1": 0.5},
            "state": "PAID",
            "at": "2024-01-01T00:00:00.000001Z",
            "maybe": "5",
            "free": {"a": [1, None]},
            "big": "18446744073709551615",
            "money": {"cents": "-3"},
        },
        order(),
    )
    unknown_enum = order.FromString(b"\x28\x63")
    found = decoded(
        how(descriptors, "shop.Order"),
        [full.SerializeToString(), b"", unknown_enum.SerializeToString(), b"\x0a", None],
    )
    names = [one.name for one in columns_in(descriptors, "shop.Order")]
    rows = dict(zip(names, lists(found), strict=True))
    assert errors(found).keys() == {3}
    assert errors(found)[3].startswith("decode.value: no Protobuf of this message")
    assert rows["id"][:3] == [7, 0, 0]
    assert rows["note"][:2] == ["", None]
    assert rows["lines"][:2] == [[{"sku": "a", "count": 2**32 - 1}, {"sku": "", "count": 0}], []]
    assert rows["scores"][0] == [("1", 0.5)]
    assert rows["state"][:3] == ["PAID", "NEW", "99"]
    assert rows["at"][0].microsecond == 1
    assert rows["at"][1] is None
    assert rows["maybe"][:2] == [5, None]
    assert rows["free"][0] == '{"a":[1.0,null]}'
    assert rows["big"][0] == Decimal(2**64 - 1)
    assert rows["money"][:2] == [{"cents": -3}, None]
    assert [column[4] for column in lists(found)] == [None] * len(names)


@settings(deadline=None)
@given(st.binary(max_size=60))
def test_arbitrary_bytes_give_a_value_or_a_bad_row(content: bytes) -> None:
    """No bytes raise anything, and what they give fits the columns or is refused."""
    if not _CACHED:
        _CACHED.append(compiled_texts(TEXTS, "order.proto"))
    found = decoded(how(_CACHED[0], "shop.Order"), [content, b"\x08\x07"])
    assert lists(found)[0][1] == 7
    for column in found.columns:
        column.validate(full=True)


_CACHED: list[bytes] = []


def test_a_deep_or_recursive_message_is_refused(descriptors: bytes) -> None:
    """A message in itself is no column."""
    with pytest.raises(SchemaUnusable, match=r"recursive: shop\.Loop holds itself"):
        ProtobufReader(descriptors, "shop.Loop")


def test_a_message_is_found_by_its_place_too(descriptors: bytes) -> None:
    """As a registry's framing names it: the second level within the first."""
    assert str(ProtobufReader(descriptors, (0, 0)).type) == "struct<sku: string, count: int64>"
    with pytest.raises(SchemaUnusable, match="can't be used"):
        ProtobufReader(descriptors, (0, 7))
    with pytest.raises(SchemaUnusable, match="name the message: the file holds Order, Loop"):
        ProtobufReader(descriptors, None)
    assert message_indexes(b"\x00rest") == ((0,), b"rest")
    assert message_indexes(b"\x04\x02\x00rest") == ((1, 0), b"rest")
    for bad in (b"", b"\x04", b"\x01", b"\xff" * 10):
        with pytest.raises(BadValue):
            message_indexes(bad)


def test_files_are_compiled_with_what_they_import(tmp_path: Path) -> None:
    """Beside them, or in named folders; protoc's own words say what is wrong."""
    (tmp_path / "common").mkdir()
    (tmp_path / "common" / "money.proto").write_text(MONEY)
    (tmp_path / "order.proto").write_text(PROTO)
    assert ProtobufReader(compiled_file(tmp_path / "order.proto"), "shop.Order").type is not None
    (tmp_path / "bad.proto").write_text('syntax = "proto3"; message {')
    with pytest.raises(SchemaUnusable, match=r"bad.proto:1:\d+: Expected message name"):
        compiled_file(tmp_path / "bad.proto")
    with pytest.raises(SchemaUnusable, match="which is no name"):
        compiled_texts({"../escape.proto": MONEY, "a.proto": MONEY}, "a.proto")
