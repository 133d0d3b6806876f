"""Tries a decoding declaration: which columns it would change, which records it would refuse.

Reads the last records of a topic and writes nothing, neither a table nor a position.
"""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Unpack

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.options import DecodeOptions
from ottla.lake.model.layout import TypedSchema
from ottla.lake.model.manifest import SchemaChange
from ottla.lake.model.option import filled
from ottla.lake.model.plan import Range
from ottla.lake.rows.evolution import NewField
from ottla.lake.rows.sorted_rows import RowSorter
from ottla.lake.source.access import Bootstrap, brokers_of
from ottla.lake.source.cluster import LOOK_PATIENCE_S, connect
from ottla.lake.tables.opening import existing_table
from ottla.lake.write.settings import decode_of
from ottla.lake.write.table_schema import LoadTyping, load_typing, sample_ranges, sample_rows

# Records are decoded at most this often, each time with columns for more of their fields.
_ROUNDS = 5
_EXAMPLES = 5


@dataclass(frozen=True, slots=True)
class RefusedKind:
    """Records that are refused for one reason, with some of their (partition, offset) pairs."""

    stage: str
    error: str
    records: int
    examples: tuple[tuple[int, int], ...]


@dataclass(frozen=True, slots=True)
class SchemaTrial:
    """What a load with the declaration would do with these records."""

    records: int
    refused: tuple[RefusedKind, ...]
    schema: TypedSchema
    changes: tuple[SchemaChange, ...]

    @property
    def decoded(self) -> int:
        return self.records - sum(one.records for one in self.refused)


def try_schema(
    topic: str,
    *,
    last: int = 1_000,
    bootstrap: str = "localhost:9092",
    target: str | None = None,
    store_options: Mapping[str, str] | None = None,
    config: str | None = None,
    client: Mapping[str, str] | None = None,
    **options: Unpack[DecodeOptions],
) -> SchemaTrial:
    """Decode the last records of `topic` as a load would, and return what the load would do.

    With `target`, decode as in a load into that table. The result then has the changes to the
    table's columns, and the table's own declaration is used if none is given. `config` and
    `client` are the settings of the client, as in `load`. Raises OttlaError, for example if the
    declaration does not fit the table's columns.
    """
    brokers = brokers_of(bootstrap, config, client)
    decode = decode_of(filled(DecodeOptions, options))
    before = None
    if target is not None:
        newest, _ = existing_table(target, store_options).latest()
        before = newest.table_schema if newest else None
    with closing(connect(brokers, LOOK_PATIENCE_S)) as cluster:
        bounds = cluster.describe(topic).bounds
    whole = [Range(topic, p, one.log_start, one.end) for p, one in sorted(bounds.items())]
    ranges = sample_ranges([one for one in whole if one.start < one.end], last)
    typing = load_typing(
        decode,
        before,
        dead_timestamps=True,
        starts={one.partition: one.start for one in ranges},
        ranges=ranges,
        bootstrap=brokers,
    )
    if typing is None or not typing.sorting.decode.sides():
        raise OttlaError(
            ErrorCode.INVALID_REQUEST,
            "there is nothing to try: say what keys or values are (--value json)",
        )
    for _ in range(_ROUNDS):
        trial, news = _tried(typing, ranges, brokers)
        if not news:
            break
        typing = typing.with_news(news)
    return trial


def _tried(
    typing: LoadTyping, ranges: list[Range], bootstrap: Bootstrap
) -> tuple[SchemaTrial, list[tuple[int, NewField, int]]]:
    """Decode the ranges; return the trial, and the fields for which the schema has no column."""
    sorting = typing.sorting
    sorting = replace(sorting, decode=replace(sorting.decode, on_bad_record="dead-letter"))
    records = 0
    places: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)
    news = []
    for wanted in ranges:
        sorter = RowSorter(sorting)
        for batch, bad_times in sample_rows(wanted, bootstrap):
            rows = sorter.sort(batch, bad_times)
            records += batch.num_rows
            if rows.dead.num_rows:
                columns = (*rows.reasons[:2], rows.dead.column("offset"))
                reasons = zip(*(one.to_pylist() for one in columns), strict=True)
                for stage, error, offset in reasons:
                    places[stage, error].append((wanted.partition, offset))
        news += [(wanted.partition, new, offset) for new, offset in sorter.news.values()]
    refused = [
        RefusedKind(stage, error, len(found), tuple(found[:_EXAMPLES]))
        for (stage, error), found in places.items()
    ]
    refused.sort(key=lambda one: -one.records)
    return SchemaTrial(records, tuple(refused), sorting.schema, typing.changes), news
