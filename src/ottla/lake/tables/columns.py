"""The columns that readers of a table see, according to its newest manifest."""

from typing import Any

import pyarrow as pa

from ottla.lake.model.buckets import ONE_BUCKET, Buckets
from ottla.lake.model.layout import RAW, layout_of
from ottla.lake.model.manifest import Manifest
from ottla.lake.model.schema import VALIDITY


def buckets_of_table(newest: Manifest | None) -> Buckets:
    """Return how a table's files are divided by event time."""
    events = newest.events if newest else None
    return Buckets(events.column, events.by) if events else ONE_BUCKET


def columns_of(newest: Manifest | None) -> Any:
    """Return an Arrow schema: the raw columns, then the typed ones, then the times of a history."""
    if newest is None:
        return RAW.schema
    columns = layout_of(newest.table_schema).schema
    is_history = newest.changelog is not None and newest.changelog.keeps == "history"
    return pa.schema([*columns, *VALIDITY]) if is_history else columns
