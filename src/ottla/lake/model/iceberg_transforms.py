"""Partitions an Iceberg table by a transform of the event-time column."""

from collections.abc import Mapping
from typing import Any

from pyiceberg.manifest import DataFile as IcebergFile
from pyiceberg.partitioning import PartitionSpec
from pyiceberg.table import Table, Transaction
from pyiceberg.transforms import DayTransform, HourTransform, MonthTransform
from pyiceberg.typedef import Record

from ottla.lake.model.buckets import NULL, Buckets, By, bucket_of, column_name, number_of
from ottla.lake.model.manifest import DataFile

_TRANSFORMS: Mapping[By, Any] = {
    "day": DayTransform(),
    "hour": HourTransform(),
    "month": MonthTransform(),
}


def partition_table(transaction: Transaction, buckets: Buckets) -> None:
    """Partition a new table once it has the column, before it has any files."""
    now = transaction.table_metadata
    if buckets.by == "none" or not now.spec().is_unpartitioned():
        return
    if buckets.column in now.schema().column_names:
        with transaction.update_spec() as spec:
            spec.add_field(buckets.column, _TRANSFORMS[buckets.by], column_name(buckets.by))


def partition_of(file: DataFile, buckets: Buckets) -> Record:
    """Return the transform's value for a file of one bucket."""
    return Record() if buckets.by == "none" else Record(number_of(file.event, buckets.by))


def bucket_in_log(table: Table, spec_id: int, file: IcebergFile) -> str | None:
    """Return the bucket of a file in the log; None if its partition is not one of ours."""
    by = _unit(table.specs().get(spec_id))
    if by is None or len(file.partition) != 1:
        return None
    number = file.partition[0]
    return NULL if number is None else bucket_of(number, by)


def _unit(spec: PartitionSpec | None) -> By | None:
    for by, transform in _TRANSFORMS.items():
        if spec is not None and [one.transform for one in spec.fields] == [transform]:
            return by
    return None


def partition_problems(table: Table, buckets: Buckets, *, has_files: bool) -> list[str]:
    """Return how other programs have changed the table's partitioning."""
    spec, columns = table.spec(), table.schema()
    found = [(columns.find_column_name(one.source_id), one.transform) for one in spec.fields]
    wanted = [] if buckets.by == "none" else [(buckets.column, _TRANSFORMS[buckets.by])]
    if found == wanted or (not found and not has_files):
        return []
    return [f"the Iceberg table: it is partitioned by {spec if found else 'nothing'}"]
