"""Columns that a format cannot hold are known by rules, which are those of the libraries."""

import pyarrow as pa
import pytest
from deltalake import Schema
from hypothesis import given
from hypothesis import strategies as st
from pyiceberg.io.pyarrow import _pyarrow_to_schema_without_ids
from pyiceberg.schema import index_by_name

from ottla.base.errors import OttlaError
from ottla.lake.write.table_schema import require_holdable

plain = st.sampled_from(
    [pa.int64(), pa.string(), pa.time32("ms"), pa.time64("us"), pa.date32(), pa.timestamp("us")]
)
names = st.sampled_from(["a", "b", "A", "a.b", "a.element"])


def structs(inner: st.SearchStrategy[pa.DataType]) -> st.SearchStrategy[pa.DataType]:
    return st.dictionaries(names, inner, min_size=1, max_size=3).map(
        lambda fields: pa.struct(list(fields.items()))
    )


kinds = st.recursive(
    plain,
    lambda inner: (
        structs(inner) | inner.map(pa.list_) | inner.map(lambda kind: pa.map_(pa.string(), kind))
    ),
    max_leaves=4,
)
# No two columns of a table have names that differ in case only.
columns = st.dictionaries(st.sampled_from(["a", "b", "a.b", "a.element"]), kinds, max_size=3)


def is_held(kind: str, schema: pa.Schema) -> bool:
    try:
        require_holdable(kind, schema)
    except OttlaError as error:
        return not any(repr(name) in error.message for name in schema.names)
    return True


@given(columns)
def test_rules_refuse_what_the_libraries_refuse(fields: dict[str, pa.DataType]) -> None:
    schema = pa.schema(list(fields.items()))
    for kind, make in (
        ("delta", Schema.from_arrow),
        ("iceberg", lambda one: index_by_name(_pyarrow_to_schema_without_ids(one))),
    ):
        if is_held(kind, schema):
            make(schema)
        else:
            with pytest.raises(Exception, match=r"."):
                make(schema)
    assert is_held("parquet", schema)
