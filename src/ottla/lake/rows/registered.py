"""Readers of values by the schemas that a registry has for them."""

from ottla.lake.rows.avro_values import AvroReader, SchemaUnusable
from ottla.lake.rows.field_reader import BadValue, ValueReader
from ottla.lake.rows.protobuf_values import ProtobufReader
from ottla.lake.rows.protoc import compiled_texts
from ottla.lake.rows.registry import NoSuchSchema, RegisteredSchema, SchemaRegistry

_FILE = "ottla_schema.proto"


class RegisteredSchemas:
    """Readers by schema number, each made once. A bad schema affects each record that names it."""

    def __init__(self, registry: SchemaRegistry) -> None:
        self._registry = registry
        self._readers: dict[tuple[int, tuple[int, ...]], ValueReader | BadValue] = {}
        self._descriptors: dict[int, bytes] = {}

    def reader(self, schema_id: int, indexes: tuple[int, ...]) -> ValueReader:
        """Return a reader as `reading.Schemas` does."""
        found = self._readers.get((schema_id, indexes))
        if found is None:
            try:
                found = self._made(self._registry.schema(schema_id), indexes)
            except NoSuchSchema as error:
                found = BadValue(str(error), "schema")
            except BadValue as error:
                found = error
            self._readers[schema_id, indexes] = found
        if isinstance(found, BadValue):
            raise BadValue(str(found), "schema")
        return found

    def latest(self, subject: str) -> ValueReader:
        """Return the reader of a subject's newest schema. Raises NoSuchSchema, BadValue."""
        newest = self._registry.latest(subject)
        return self._made(newest, (0,) if newest.kind == "PROTOBUF" else ())

    def _made(self, found: RegisteredSchema, indexes: tuple[int, ...]) -> ValueReader:
        if found.kind == "AVRO" and not indexes:
            return AvroReader(found.text, list(found.references.values()))
        if found.kind == "PROTOBUF" and indexes:
            descriptors = self._descriptors.get(found.id)
            if descriptors is None:
                texts = {**found.references, _FILE: found.text}
                descriptors = self._descriptors[found.id] = compiled_texts(texts, _FILE)
            return ProtobufReader(descriptors, indexes)
        raise SchemaUnusable(f"schema {found.id} of the registry is {found.kind}")
