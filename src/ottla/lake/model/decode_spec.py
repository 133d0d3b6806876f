"""The user's declaration of how to decode keys and values: formats, columns, bad records.

    Decode(value=Format("json", columns=columns({"id": "int64", "price": "decimal(10,2)"})))
    decode_from({"value": "avro", "registry": "http://registry:8081", "on_bad_record": "null"})

This module is pure: the caller has read the schema files.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args
from urllib.parse import urlsplit

from ottla.base.errors import OttlaError, WrongWords
from ottla.lake.model.option import hint
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.model.types import Type, parse_type

Kind = Literal["bytes", "string", "json", "csv", "avro", "protobuf"]
OnBadRecord = Literal["fail", "dead-letter", "null"]
Side = Literal["key", "value"]

# The names of the raw columns. No typed column may have one, and case is ignored as in Spark.
TAKEN = frozenset({*ROW_SCHEMA.names, "row_hash"})
_WITH_SCHEMA = frozenset({"avro", "protobuf"})
_DEBEZIUM = frozenset({"json", "avro"})


@dataclass(frozen=True, slots=True)
class Column:
    """A typed column: its name, its type, and its place in the decoded value."""

    name: str
    type: Type
    nullable: bool = True
    # The path of nested fields to the column's value; empty for the whole decoded value.
    source: tuple[str, ...] = ()
    # Other paths, tried if `source` has no value. A rename keeps the old path here.
    also: tuple[tuple[str, ...], ...] = ()


@dataclass(frozen=True, slots=True)
class Csv:
    """The dialect of CSV lines. Columns are identified by their order."""

    delimiter: str = ","
    quote: str = '"'
    null: str = ""  # The text of a field that is null.


@dataclass(frozen=True, slots=True)
class Format:
    """How keys or values are encoded.

    If `columns` is None, columns follow from the schema, or from a sample of records. `schema` is
    the text of an Avro schema, or a Protobuf FileDescriptorSet in base64. It is None if each record
    has the id of its schema in a registry. `message` is the name of the Protobuf message.
    """

    kind: Kind
    columns: tuple[Column, ...] | None = None
    schema: str | None = None
    message: str | None = None
    debezium: bool = False
    csv: Csv = Csv()
    # With a schema file: whether each value begins with the five bytes of a registry's framing.
    framed: bool = False

    def __post_init__(self) -> None:
        if self.kind not in get_args(Kind):
            known = ", ".join(get_args(Kind))
            raise wrong(f"{self.kind!r} is no format: {known}, debezium-json, debezium-avro")
        if self.debezium and self.kind not in _DEBEZIUM:
            raise wrong(f"Debezium's envelopes are JSON or Avro, not {self.kind}")
        if self.schema is not None and self.kind not in _WITH_SCHEMA:
            raise wrong(f"a schema file is for avro and protobuf, not for {self.kind}")
        if self.kind == "csv" and not self.columns:
            raise wrong("csv needs columns: name them in the order of the fields, with types")
        if self.kind == "csv":
            for each in self.columns or ():
                if each.type.fields:
                    raise wrong(f"the column {each.name} of csv can't be a {each.type.kind}")
        if len(self.csv.delimiter) != 1 or len(self.csv.quote) != 1:
            raise wrong("delimiter and quote of csv are one character each")

    @property
    def needs_registry(self) -> bool:
        """Return whether each record has the id of its schema in a registry."""
        return self.kind in _WITH_SCHEMA and self.schema is None


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """How a table's columns change when the records' fields change.

    `add` says whether a new field becomes a column, is left out, or makes its record a bad record.
    `widen` says whether a column gets a wider type if a record needs it, or the record is bad.
    `rename` has pairs of a new and an old column name.
    """

    add: Literal["add", "ignore", "reject"] = "add"
    widen: Literal["widen", "reject"] = "widen"
    rename: tuple[tuple[str, str], ...] = ()

    def __post_init__(self) -> None:
        if self.add not in {"add", "ignore", "reject"}:
            raise wrong(f"the rule add is add, ignore or reject, not {self.add!r}")
        if self.widen not in {"widen", "reject"}:
            raise wrong(f"the rule widen is widen or reject, not {self.widen!r}")


@dataclass(frozen=True, slots=True)
class Decode:
    """How records become typed columns.

    `registry` is the URL of a schema registry, or None. Without `keep_raw`, a column `row_hash`
    replaces key, value and headers. If columns have to be inferred, `sample` records are read.
    """

    value: Format | None = None
    key: Format | None = None
    registry: str | None = None
    on_bad_record: OnBadRecord = "fail"
    keep_raw: bool = True
    sample: int = 1000
    rules: SchemaRules = field(default_factory=SchemaRules)

    def __post_init__(self) -> None:
        if self.on_bad_record not in get_args(OnBadRecord):
            raise wrong(f"on_bad_record is fail, dead-letter or null, not {self.on_bad_record!r}")
        for side, one in self.sides():
            if one.needs_registry and self.registry is None:
                raise wrong(
                    f"{one.kind} of the {side} needs a schema: give its file (--schema-file), or "
                    "a registry (--registry URL)"
                )
        if not isinstance(self.sample, int) or isinstance(self.sample, bool) or self.sample < 1:
            raise wrong(f"sample is {self.sample!r}, not a whole number above 0")
        if self.registry is not None:
            # Check the URL before a manifest records it: it must have no password.
            registry_urls(self.registry)
        if not self.keep_raw and not self.sides():
            raise wrong("without decoded columns the raw ones stay: drop keep_raw=False")
        require_names([one for _, each in self.sides() for one in each.columns or ()])

    def sides(self) -> list[tuple[Side, Format]]:
        """Return the declared formats of key and value; a side without a format is left out."""
        found: list[tuple[Side, Format | None]] = [("key", self.key), ("value", self.value)]
        return [(side, one) for side, one in found if one is not None]


def require_names(wanted: list[Column]) -> None:
    """Raise OttlaError INVALID_REQUEST if two columns have the same name."""
    seen = set(TAKEN)
    for one in wanted:
        if one.name.lower() in seen:
            raise wrong(
                f"a column {one.name} is there already (case does not count): name it otherwise, "
                f'as in new_name = {{ type = "{one.type}", source = "{".".join(one.source)}" }}'
            )
        seen.add(one.name.lower())


def free_name(name: str, side: Side, taken: set[str]) -> str:
    """Return the name, prefixed with the side if it is in `taken`, which is in lower case."""
    candidate, number = name or "decoded", 1
    while candidate.lower() in taken | TAKEN:
        candidate = f"{side}_{name}" if number == 1 else f"{side}_{name}_{number}"
        number += 1
    return candidate


def columns(declared: Mapping[str, Any]) -> tuple[Column, ...]:
    """Return columns for `{"id": "int64", "at": {"type": "timestamp(ms)", "source": "meta.at"}}`.

    With `nullable = false`, or `!` after the type, a record without the field is a bad record.
    Raises OttlaError INVALID_REQUEST.
    """
    return tuple(_column(name, what) for name, what in declared.items())


def _column(name: str, declared: Any) -> Column:
    if isinstance(declared, str):
        declared = {"type": declared}
    if not isinstance(declared, Mapping) or "type" not in declared or not name:
        raise wrong(f'the column {name!r} needs a type, as in id = "int64"')
    _require_known(f"the column {name}", declared, ("type", "nullable", "source"))
    words = str(declared["type"]).strip()
    nullable = bool(declared.get("nullable", True)) and not words.endswith("!")
    source = str(declared.get("source", name))
    path = () if source == "$" else tuple(source.removeprefix("$.").split("."))
    return Column(name, parse_type(words.rstrip("! ")), nullable, path)


_OPTIONS = frozenset(
    {
        "key", "value", "columns", "key_columns", "schema", "key_schema", "message", "key_message",
        "registry", "on_bad_record", "keep_raw", "sample", "rules", "csv", "framed", "key_framed",
    }
)  # fmt: skip
# Options that are TOML tables, with their keys.
_TABLES = {"csv": ("delimiter", "quote", "null"), "rules": ("add", "widen", "rename")}


def require_options(options: Mapping[str, Any], more: Iterable[str] = ()) -> None:
    """Raise OttlaError for an unknown key. `more` has keys that the caller handles itself."""
    _require_known("decode", options, (*sorted(_OPTIONS), *more))
    for name, known in _TABLES.items():
        if isinstance(options.get(name), Mapping):
            _require_known(f"{name} of decode", options[name], known)


def _require_known(what: str, given: Mapping[str, Any], known: Sequence[str]) -> None:
    for word in given:
        if word not in known:
            raise wrong(f"{what} has {word}, which is not known; {hint(word, known)}")


def decode_from(options: Mapping[str, Any]) -> Decode:
    """Return the declaration in the table `[decode]` of a TOML file, or in options of such names.

    Raises OttlaError INVALID_REQUEST.
    """
    require_options(options)
    try:
        csv = Csv(**options.get("csv", {}))
        rules = dict(options.get("rules", {}))
        rename = rules.pop("rename", {})
        if not isinstance(rename, Mapping) or not all(isinstance(v, str) for v in rename.values()):
            raise wrong(f'rename is {rename!r}, not a table such as {{ new_name = "old_name" }}')
        return Decode(
            value=_format(options, "value", "", csv),
            key=_format(options, "key", "key_", csv),
            registry=options.get("registry"),
            on_bad_record=options.get("on_bad_record", "fail"),
            keep_raw=bool(options.get("keep_raw", True)),
            sample=options.get("sample", 1000),
            rules=SchemaRules(**rules, rename=tuple(rename.items())),
        )
    except (TypeError, ValueError) as error:
        raise wrong(f"decode can't be read: {error}") from error


def options_of(decode: Decode) -> dict[str, Any]:
    """Return the options of a declaration, from which `decode_from` makes it again."""
    found: dict[str, Any] = {
        "registry": decode.registry,
        "on_bad_record": decode.on_bad_record,
        "keep_raw": decode.keep_raw,
        "sample": decode.sample,
        "rules": {
            "add": decode.rules.add,
            "widen": decode.rules.widen,
            "rename": dict(decode.rules.rename),
        },
    }
    for side, how in decode.sides():
        prefix = "key_" if side == "key" else ""
        found[side] = f"debezium-{how.kind}" if how.debezium else how.kind
        found["csv"] = asdict(how.csv)
        found[f"{prefix}framed"] = how.framed
        found[f"{prefix}schema"] = how.schema
        found[f"{prefix}message"] = how.message
        if how.columns is not None:
            found[f"{prefix}columns"] = {one.name: _declared(one) for one in how.columns}
    return {name: each for name, each in found.items() if each is not None}


def _declared(one: Column) -> dict[str, Any]:
    source = ".".join(one.source) if one.source else "$"
    return {"type": str(one.type), "nullable": one.nullable, "source": source}


def _format(options: Mapping[str, Any], side: Side, prefix: str, csv: Csv) -> Format | None:
    words = options.get(side)
    declared = options.get(f"{prefix}columns")
    if words is None:
        if declared:
            raise wrong(f'{prefix}columns need a format: {side} = "json"')
        return None
    kind = str(words)
    return Format(
        kind=kind.removeprefix("debezium-"),  # type: ignore[arg-type]  # Checked by Format.
        columns=columns(declared) if declared else None,
        schema=options.get(f"{prefix}schema"),
        message=options.get(f"{prefix}message"),
        debezium=kind.startswith("debezium-"),
        csv=csv,
        framed=bool(options.get(f"{prefix}framed", False)),
    )


def wrong(message: str) -> OttlaError:
    """Return the error for a wrong declaration."""
    return WrongWords(message)


def registry_urls(urls: str) -> list[str]:
    """Return the URLs in order. Raises OttlaError for a wrong URL; the message has no password."""
    found = [url.strip().rstrip("/") for url in urls.split(",") if url.strip()]
    if "@" in urls:
        raise wrong(
            "a registry's URL holds no password: set OTTLA_REGISTRY_USER and "
            "OTTLA_REGISTRY_PASSWORD, or OTTLA_REGISTRY_TOKEN",
        )
    for url in found or [""]:
        parts = urlsplit(url)
        if parts.scheme not in {"http", "https"} or not parts.hostname:
            raise wrong(f"{url!r} is no URL of a registry")
    return found
