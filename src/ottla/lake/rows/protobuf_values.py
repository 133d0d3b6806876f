"""Reads Protobuf messages with Google's runtime, and compiles their schemas with protoc.

An unset field is null if it tracks presence, otherwise it has its default. An enum becomes the name
of its number, or the number if it has no name. Unsigned numbers become the next larger signed type.
A Timestamp becomes a timestamp, a wrapper its value, and a `google.protobuf.Struct`, `Value`,
`ListValue` or `Any` becomes JSON text.
"""

import base64
import importlib.util
import json
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ottla.base.errors import WrongWords
from ottla.lake.model.types import Type, decimal_of, list_of, map_of, plain, struct_of
from ottla.lake.rows.value_reader import BadValue, SchemaUnusable, missing

Take = Callable[[Any], Any]

_SCALARS = {
    1: "float64", 2: "float32", 3: "int64", 5: "int32", 6: "uint64", 7: "uint32", 8: "boolean",
    9: "string", 12: "binary", 4: "uint64", 13: "uint32", 15: "int32", 16: "int64", 17: "int32",
    18: "int64",
}  # fmt: skip
_ENUM, _MESSAGE, _GROUP = 14, 11, 10
_AS_JSON = frozenset(f"google.protobuf.{name}" for name in ("Struct", "Value", "ListValue", "Any"))
_WRAPPERS = frozenset(
    f"google.protobuf.{name}Value"
    for name in ("Double", "Float", "Int64", "UInt64", "Int32", "UInt32", "Bool", "String", "Bytes")
)
_NODES_MAX = 5_000
_PROTOC_SECONDS_MAX = 60


class ProtobufReader:
    """Reads messages of one type, whose schema is in the bytes of a FileDescriptorSet.

    `message` is the full name of the type, or its indexes in the last file (`message_indexes`), or
    None for the only message of the last file. Raises SchemaUnusable.
    """

    def __init__(self, descriptors: bytes, message: str | tuple[int, ...] | None) -> None:
        try:
            from google.protobuf import (  # noqa: PLC0415  # An extra.
                descriptor_pb2,
                descriptor_pool,
                json_format,
                message_factory,
            )
            from google.protobuf.message import DecodeError  # noqa: PLC0415
        except ImportError:
            raise missing("protobuf", "protobuf", "Protobuf") from None
        self._decode_error = DecodeError
        self._json_format = json_format
        try:
            files = descriptor_pb2.FileDescriptorSet.FromString(descriptors).file
            pool = descriptor_pool.DescriptorPool()
            for file in files:
                pool.Add(file)
            name = message if isinstance(message, str) else _name(files, message)
            descriptor = pool.FindMessageTypeByName(name)
        except (DecodeError, KeyError, TypeError, ValueError, IndexError) as error:
            raise SchemaUnusable(f"the schema of Protobuf can't be used: {error}") from error
        self._class = message_factory.GetMessageClass(descriptor)
        self._pool = pool
        self._nodes = 0
        self.type: Type | None
        self.type, self._take = self._message(descriptor, ())

    def read(self, content: bytes) -> Any:
        try:
            found = self._class.FromString(content)
        except (self._decode_error, ValueError, RecursionError) as error:
            raise BadValue(f"no Protobuf of this message: {error}") from None
        return self._take(found)

    def _message(self, descriptor: Any, above: tuple[str, ...]) -> tuple[Type, Take]:
        """Return the type of a message, and a function that converts a message to its value."""
        name = descriptor.full_name
        if name == "google.protobuf.Timestamp":
            return plain("timestamp(us)"), _micros
        if name in _AS_JSON:
            return plain("json"), self._to_json
        if name in _WRAPPERS:
            kind, take = self._single(descriptor.fields_by_name["value"], above)
            return kind, lambda wrapped: take(wrapped.value)
        if name in above:
            raise SchemaUnusable(
                f"the schema is recursive: {name} holds itself. Such values are not decoded; take "
                "them as bytes"
            )
        self._nodes += 1 + len(descriptor.fields)
        if self._nodes > _NODES_MAX:
            raise SchemaUnusable(f"the schema has more than {_NODES_MAX} fields")
        fields: list[tuple[str, Type]] = []
        takes: list[tuple[str, bool, Take]] = []
        for field in sorted(descriptor.fields, key=lambda one: one.index):
            kind, take = self._field(field, (*above, name))
            fields.append((field.name, kind))
            takes.append((field.name, field.has_presence, take))

        def to_object(message: Any) -> dict[str, Any]:
            return {
                label: None
                if presence and not message.HasField(label)
                else take(getattr(message, label))
                for label, presence, take in takes
            }

        return struct_of(tuple(fields)), to_object

    def _field(self, field: Any, above: tuple[str, ...]) -> tuple[Type, Take]:
        inner = field.message_type
        if inner is not None and inner.GetOptions().map_entry:
            kind, take = self._single(inner.fields_by_name["value"], above)
            return map_of(kind), lambda found: {_key(k): take(found[k]) for k in found}
        kind, take = self._single(field, above)
        if field.is_repeated:
            return list_of(kind), lambda found: [take(one) for one in found]
        return kind, take

    def _single(self, field: Any, above: tuple[str, ...]) -> tuple[Type, Take]:
        if field.type in (_MESSAGE, _GROUP):
            return self._message(field.message_type, above)
        if field.type == _ENUM:
            names = {value.number: value.name for value in reversed(field.enum_type.values)}
            return plain("string"), lambda number: names.get(number, str(number))
        kind = _SCALARS[field.type]
        if kind == "uint64":
            return decimal_of(20, 0), _as_is
        return plain("int64" if kind == "uint32" else kind), _as_is

    def _to_json(self, message: Any) -> Any:
        """Return the value of a message for a column of type `json`."""
        try:
            text = self._json_format.MessageToJson(message, descriptor_pool=self._pool)
            return json.loads(text)
        except (self._json_format.Error, ValueError, TypeError, RecursionError) as error:
            raise BadValue(f"no JSON can be made of a field: {error}") from None


def _name(files: Sequence[Any], place: tuple[int, ...] | None) -> str:
    """Return the full name of the message at `place` in the last file."""
    last = files[-1]
    if place is None:
        if len(last.message_type) != 1:
            known = ", ".join(one.name for one in last.message_type)
            raise SchemaUnusable(f"name the message: the file holds {known or 'none'}")
        place = (0,)
    if min(place) < 0:
        raise IndexError(f"there is no message {place}")
    found = last.message_type[place[0]]
    names = [found.name]
    for index in place[1:]:
        found = found.nested_type[index]
        names.append(found.name)
    return ".".join([last.package, *names] if last.package else names)


def _as_is(value: Any) -> Any:
    return value


def _key(key: Any) -> str:
    """Return the key of a map as a string, because columns only have maps with string keys."""
    return str(key).lower() if isinstance(key, bool) else str(key)


def _micros(stamp: Any) -> int:
    return int(stamp.seconds) * 1_000_000 + int(stamp.nanos) // 1_000


# -- schemas


def compiled_file(path: Path) -> bytes:
    """Return the FileDescriptorSet of a `.proto` file and its imports. The file itself is last.

    Imports are looked up in the file's folder. Raises SchemaUnusable.
    """
    return _compiled(path.name, path.parent)


def compiled_texts(texts: Mapping[str, str], name: str) -> bytes:
    """Compile the file `name` of `texts`, which has files by name. Raises SchemaUnusable."""
    with TemporaryDirectory() as made:
        root = Path(made).resolve()
        for each, text in texts.items():
            path = (root / each).resolve()
            if not path.is_relative_to(root):
                raise SchemaUnusable(f"the schema of Protobuf imports {each!r}, which is no name")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
        return _compiled(name, root)


def _compiled(name: str, folder: Path) -> bytes:
    tools = importlib.util.find_spec("grpc_tools")
    if tools is None or tools.origin is None:
        raise missing("grpcio-tools", "protobuf", "compiling .proto files")
    known = Path(tools.origin).parent / "_proto"
    command = [sys.executable, "-m", "grpc_tools.protoc", "--include_imports"]
    with TemporaryDirectory() as made:
        descriptors = Path(made) / "descriptors"
        command += [f"-I{folder}", f"-I{known}", f"--descriptor_set_out={descriptors}", name]
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=_PROTOC_SECONDS_MAX, check=False
            )
        except subprocess.TimeoutExpired:
            raise SchemaUnusable(
                f"protoc takes longer than {_PROTOC_SECONDS_MAX} s for {name}"
            ) from None
        if done.returncode:
            raise SchemaUnusable(f"the schema of Protobuf can't be compiled: {done.stderr.strip()}")
        return descriptors.read_bytes()


def schema_text(path: Path, kind: str) -> str:
    """Return the schema in a file, in the form of `Format.schema`. Raises OttlaError.

    `kind` is avro, debezium-avro or protobuf.
    """
    try:
        if kind == "protobuf":
            return base64.b64encode(compiled_file(path)).decode()
        return path.read_text()
    except (BadValue, OSError, UnicodeDecodeError) as error:
        raise WrongWords(f"the schema in {path} can't be used: {error}") from None
