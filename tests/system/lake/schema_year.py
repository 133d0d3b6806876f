"""A year of schema changes: forty steps of a producer whose records change, and what tables hold.

Each step adds columns and fields, widens types, or takes another name for a field; then come
records that need it: numbers beyond the narrower type, digits that it could not hold. `Year` loads
them step by step and knows the rows that every reader has to find.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
from confluent_kafka import Producer
from deltalake import DeltaTable, QueryBuilder
from pyiceberg.catalog import load_catalog
from rig.nodes import Node

import ottla.lake
from ottla.lake import Decode, Format, run_here
from ottla.lake.model.decode_spec import columns
from ottla.lake.model.types import Type, parse_type

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Step:
    """Columns with the types that they have from now on, and those that producers leave out."""

    what: str
    columns: Mapping[str, str]
    gone: tuple[str, ...] = ()


_BUYER = "struct<name: string, city: string, address: struct<street: string, zip: int64"
_OPTIONS = "list<struct<name: string"
_LINES = "list<struct<sku: string, count: int64, price: decimal(18,2)"

STEPS = (
    Step("the first columns", {"id": "int64!", "name": "string"}),
    Step("add qty", {"qty": "int32"}),
    Step("add price", {"price": "float32"}),
    Step("add amount", {"amount": "decimal(9,2)"}),
    Step("add customer", {"customer": "struct<name: string>"}),
    Step("add customer.city", {"customer": "struct<name: string, city: string>"}),
    Step("add lines", {"lines": "list<struct<sku: string>>"}),
    Step("add lines.[].count", {"lines": "list<struct<sku: string, count: int32>>"}),
    Step("widen qty", {"qty": "int64"}),
    Step("add at", {"at": "timestamp(ms)"}),
    Step("widen price", {"price": "float64"}),
    Step(
        "add customer.address",
        {"customer": "struct<name: string, city: string, address: struct<street: string>>"},
    ),
    Step("add customer.address.zip", {"customer": f"{_BUYER.replace('int64', 'int32')}>>"}),
    Step("widen customer.address.zip", {"customer": f"{_BUYER}>>"}),
    Step("add tags", {"tags": "list<string>"}),
    Step("add labels", {"labels": "map<string>"}),
    Step("add seen", {"seen": "timestamp(us)"}),
    Step("rename name to title", {"title": "string"}, gone=("name",)),
    Step("widen amount", {"amount": "decimal(12,2)"}),
    Step("widen lines.[].count", {"lines": "list<struct<sku: string, count: int64>>"}),
    Step("add codes", {"codes": "list<int32>"}),
    Step("widen codes.[]", {"codes": "list<int64>"}),
    Step("add scores", {"scores": "map<int32>"}),
    Step("widen scores.{}", {"scores": "map<int64>"}),
    Step("add lines.[].price", {"lines": f"{_LINES.replace('18', '9')}>>"}),
    Step("widen lines.[].price", {"lines": f"{_LINES}>>"}),
    Step("add places", {"places": "map<struct<x: float32>>"}),
    Step("add places.{}.y", {"places": "map<struct<x: float32, y: float32>>"}),
    Step("widen places.{}.x", {"places": "map<struct<x: float64, y: float32>>"}),
    Step("rename customer to buyer", {"buyer": f"{_BUYER}>>"}, gone=("customer",)),
    Step("add buyer.vip", {"buyer": f"{_BUYER}>, vip: boolean>"}),
    Step("add small", {"small": "int16"}),
    Step("widen small", {"small": "int32"}),
    Step("widen small again", {"small": "int64"}),
    Step("add day", {"day": "date"}),
    Step("rename at to placed_at", {"placed_at": "timestamp(us)"}, gone=("at",)),
    Step("add lines.[].options", {"lines": f"{_LINES}, options: {_OPTIONS}>>>>"}),
    Step("add an option's value", {"lines": f"{_LINES}, options: {_OPTIONS}, value: int32>>>>"}),
    Step("widen an option's value", {"lines": f"{_LINES}, options: {_OPTIONS}, value: int64>>>>"}),
    Step(
        "widen amount again, add buyer.address.country",
        {"amount": "decimal(38,2)", "buyer": f"{_BUYER}, country: string>, vip: boolean>"},
    ),
)


def sent_and_read(kind: Type, number: int) -> tuple[Any, Any]:
    """A value as JSON has it, and as every reader has to give it back (`plain`)."""
    match kind.kind:
        case "struct":
            fields = {name: sent_and_read(each, number) for name, each in kind.fields}
            return {n: one for n, (one, _) in fields.items()}, {
                n: r for n, (_, r) in fields.items()
            }
        case "list" | "map":
            sent, read = sent_and_read(kind.element, number)
            return ([sent], [read]) if kind.kind == "list" else ({"k": sent}, {"k": read})
        case "int16" | "int32" | "int64":
            whole = (1 << (int(kind.kind[3:]) - 2)) + number
            return whole, whole
        case "float32" | "float64":
            real = (0.5 if kind.kind == "float32" else 1e300) * (number + 1)
            return real, real
        case "decimal":
            digits = f"{'7' * (kind.precision - kind.scale - 2)}{number:02d}.25"
            return digits, digits
        case "boolean":
            return True, True
        case "date":
            return "2026-11-23", "2026-11-23"
        case "timestamp(ms)" | "timestamp(us)":
            per_second = 1_000 if kind.kind == "timestamp(ms)" else 1_000_000
            count = 1_795_000_000 * per_second + number
            moment = datetime.fromtimestamp(1_795_000_000, UTC).replace(
                microsecond=number * 1_000_000 // per_second
            )
            return count, moment.isoformat()
    return f"{kind} {number}", f"{kind} {number}"


@dataclass
class Year:
    """One topic and one table of it; `rows` are those that the table holds, in order of offset."""

    node: Node
    topic: str
    target: Path
    declared: dict[str, str] = field(default_factory=dict)
    gone: set[str] = field(default_factory=set)
    rows: list[Row] = field(default_factory=list)

    @property
    def names(self) -> list[str]:
        """The typed columns that the table has by now."""
        return list(self.declared)

    def take(self, step: Step, **options: Any) -> None:
        """Let the producer change, send a record, and load it."""
        self.declared |= step.columns
        self.gone |= set(step.gone)
        declared = {n: kind for n, kind in self.declared.items() if n not in self.gone}
        values = {
            name: sent_and_read(parse_type(kind.rstrip("!")), len(self.rows))
            for name, kind in declared.items()
        }
        producer = Producer({"bootstrap.servers": self.node.bootstrap, "log_level": 0})
        record = json.dumps({name: sent for name, (sent, _) in values.items()})
        producer.produce(self.topic, record, b"k%d" % len(self.rows), partition=0)
        assert producer.flush(120) == 0
        self.rows.append({name: read for name, (_, read) in values.items()})
        ottla.lake.load(
            self.topic,
            str(self.target),
            bootstrap=self.node.bootstrap,
            runner=run_here,
            decode=Decode(value=Format("json", columns(declared))),
            **options,
        )

    def problems(self) -> list[str]:
        """What `verify` says of the table."""
        return ottla.lake.verify(str(self.target), bootstrap=self.node.bootstrap).problems


def plain(found: pa.Table, names: Sequence[str]) -> list[Row]:
    """Rows in order of offset, in words that all readers share; null is left out everywhere."""
    rows = found.select(["offset", *names]).to_pylist(maps_as_pydicts="strict")
    rows.sort(key=lambda row: int(row.pop("offset")))
    return [_plain(row) for row in rows]


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {name: _plain(each) for name, each in value.items() if each is not None}
        case list():
            return [_plain(each) for each in value]
        case Decimal():
            return str(value)
        case datetime():
            return value.astimezone(UTC).isoformat()
        case date():
            return value.isoformat()
    return value


def by_pyiceberg(target: Path) -> pa.Table:
    """All rows, by the catalog in the table's folder."""
    catalog = load_catalog("ottla", type="sql", uri=f"sqlite:///{target}/_ottla/catalog.db")
    try:
        return catalog.load_table(("ottla", target.name)).scan().to_arrow()
    finally:
        catalog.close()


def by_deltalake(target: Path) -> pa.Table:
    """All rows, by delta-rs's own engine."""
    query = QueryBuilder().register("t", DeltaTable(str(target)))
    return pa.table(query.execute("select * from t"))


def by_duckdb(target: Path) -> pa.Table:
    """All rows of the files that count, united by name."""
    files = ottla.lake.files(str(target))
    query = "select * from read_parquet(?, union_by_name = true)"
    return duckdb.connect().sql(query, params=[files]).to_arrow_table()


BY_FORMAT = {"delta": by_deltalake, "iceberg": by_pyiceberg}
