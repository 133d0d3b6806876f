"""A load goes into a Delta or Iceberg table that others made, and proves what it loaded itself."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from deltalake import DeltaTable, Schema, write_deltalake
from pyiceberg.catalog import load_catalog

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake.model.schema import ROW_SCHEMA
from ottla.lake.tables.opening import open_table
from ottla.lake.write.publish_source import open_source
from tests.unit.lake.tables import commit, rows

NOTE = pa.field("note", pa.string())


def of_others(count: int) -> pa.Table:
    """Rows of another program: in the columns of a load, and in one more."""
    batch = rows(7, 0, count)
    found = pa.Table.from_batches([batch])
    return found.append_column(NOTE, pa.array(["by hand"] * count))


class Place:
    """A table that others made, with three rows of theirs."""

    def __init__(self, folder: Path, kind: str) -> None:
        self.folder, self.kind = folder / "orders", kind
        self.options: dict[str, str] = {}
        found = of_others(3)
        if kind == "delta":
            write_deltalake(str(self.folder), found)
            return
        uri = f"sqlite:///{folder}/catalog.db"
        self.options = {"catalog.type": "sql", "catalog.uri": uri, "catalog.table": "shop.orders"}
        self.catalog = load_catalog("ottla", type="sql", uri=uri)
        self.catalog.create_namespace("shop")
        place = f"file://{self.folder}"
        self.catalog.create_table("shop.orders", found.schema, place).append(found)

    def open(self) -> Any:
        return open_table(str(self.folder), None, self.options, into_existing=True)

    def verified(self) -> ottla.lake.Verification:
        return ottla.lake.verify(str(self.folder), bootstrap=None, store_options=self.options)

    def rows(self) -> int:
        if self.kind == "delta":
            counts = pa.table(DeltaTable(str(self.folder)).get_add_actions(flatten=True))
            return int(sum(counts.column("num_records").to_pylist()))
        return len(self.catalog.load_table("shop.orders").scan().to_arrow())


@pytest.fixture(params=["delta", "iceberg"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    return Place(tmp_path, request.param)


def test_loads_stand_beside_the_rows_of_others_and_are_proven(place: Place) -> None:
    """Positions begin with the first commit; what others have is said, and not counted."""
    commit(place.open(), 10)
    commit(open_table(str(place.folder), None, place.options), 5)
    assert place.rows() == 3 + 2 * 15
    found = place.verified()
    assert (found.problems, found.rows, found.loads, found.uncounted) == ([], 30, 2, [])
    assert found.remarks == [
        "1 file with 3 rows of other programs count in the table, too: the proof covers what ottla "
        "loaded"
    ]


def test_folders_in_the_log_of_a_delta_table_are_no_problem(tmp_path: Path) -> None:
    """Spark makes one in each new table."""
    place = Place(tmp_path, "delta")
    (place.folder / "_delta_log" / "_staged_commits").mkdir()
    commit(place.open(), 10)
    assert place.rows() == 3 + 20


def test_others_go_on_writing(place: Place) -> None:
    commit(place.open(), 10)
    if place.kind == "delta":
        write_deltalake(str(place.folder), of_others(4), mode="append")
    else:
        place.catalog.load_table("shop.orders").append(of_others(4))
    commit(place.open(), 10)
    assert place.rows() == 7 + 2 * 20
    found = place.verified()
    assert (found.problems, found.rows) == ([], 40)
    assert "2 files with 7 rows of other programs" in found.remarks[0]


def test_a_removed_row_of_a_load_is_a_problem(place: Place) -> None:
    commit(place.open(), 10)
    if place.kind == "delta":
        DeltaTable(str(place.folder)).delete("partition = 1 and offset = 3")
    else:
        place.catalog.load_table("shop.orders").delete("partition = 1 and offset = 3")
    found = place.verified()
    assert not found.proven
    assert "another program changed rows: 1 files of loads with 10 rows" in "".join(found.problems)


def test_deletion_vector_on_a_file_of_a_load_is_a_problem(tmp_path: Path) -> None:
    """As Spark writes it: the file stays, and its entry names the rows that are deleted."""
    place = Place(tmp_path, "delta")
    commit(place.open(), 10)
    log = place.folder / "_delta_log"
    entries = [json.loads(line) for line in (log / f"{1:020d}.json").read_text().splitlines()]
    with_vector(log, next(one["add"] for one in entries if "add" in one), 2)
    assert "(a deletion vector)" in "".join(place.verified().problems)


def with_vector(log: Path, added: dict[str, Any], version: int) -> None:
    """Delete row 3 of a file in the version of the log."""
    # The bitmap {3} of Delta's protocol, inline in Z85.
    bits = "^Bg9^0rr910000000000iXQKl0rr91000005c8Xg0@@r3"
    vector = {"storageType": "i", "pathOrInlineDv": bits, "sizeInBytes": 34, "cardinality": 1}
    features = ["deletionVectors"]
    protocol = {"minReaderVersion": 3, "minWriterVersion": 7}
    news = [
        {"commitInfo": {"timestamp": 1, "operation": "DELETE"}},
        {"protocol": {**protocol, "readerFeatures": features, "writerFeatures": features}},
        {"remove": {"path": added["path"], "deletionTimestamp": 1, "dataChange": True}},
        {"add": {**added, "deletionVector": vector}},
    ]
    (log / f"{version:020d}.json").write_text("".join(json.dumps(one) + "\n" for one in news))


def test_rows_of_others_that_a_deletion_vector_removes_do_not_count(tmp_path: Path) -> None:
    place = Place(tmp_path, "delta")
    write_deltalake(str(place.folder), of_others(5), mode="overwrite")
    commit(place.open(), 10)
    log = place.folder / "_delta_log"
    entries = [json.loads(line) for line in (log / f"{1:020d}.json").read_text().splitlines()]
    with_vector(log, next(one["add"] for one in entries if "add" in one), 3)
    assert "1 file with 4 rows of other programs" in place.verified().remarks[0]


def test_a_changed_file_of_a_load_is_a_problem(place: Place) -> None:
    commit(place.open(), 10)
    path = min((place.folder / "data").glob("v0000000001-*.parquet"))
    path.write_bytes(path.read_bytes() + b" ")
    assert f"{path.name} is not as it was written" in "".join(place.verified().problems)


def test_a_table_of_others_is_refused_without_the_word(place: Place) -> None:
    with pytest.raises(OttlaError, match="--into-existing"):
        open_table(str(place.folder), None, place.options)


def without(name: str) -> pa.Schema:
    return pa.schema([one for one in [*ROW_SCHEMA, NOTE] if one.name != name])


REFUSED: dict[str, tuple[pa.Schema, list[str], str]] = {
    "column missing": (without("headers"), [], "it has no column headers"),
    "other type": (
        pa.schema([*without("offset"), pa.field("offset", pa.int32())]),
        [],
        "its column offset is integer, and long in the load",
    ),
    "never null": (
        pa.schema([*ROW_SCHEMA, pa.field("id", pa.int64(), nullable=False)]),
        [],
        "its column id is never null",
    ),
    "null in the load": (
        pa.schema([*without("value"), pa.field("value", pa.binary(), nullable=False)]),
        [],
        "its column value is never null, and may be null in the load",
    ),
    "generated": (
        pa.schema(
            [
                *without("topic"),
                pa.field("topic", pa.string(), metadata={"delta.generationExpression": "'t'"}),
            ]
        ),
        [],
        "its column topic has a rule \\(delta.generationExpression\\)",
    ),
    "partitioned": (pa.schema([*ROW_SCHEMA, NOTE]), ["note"], "it is partitioned by note"),
}


@pytest.mark.parametrize(("schema", "by", "said"), REFUSED.values(), ids=REFUSED.keys())
def test_delta_table_that_does_not_fit_is_refused_by_its_columns(
    tmp_path: Path, schema: pa.Schema, by: list[str], said: str
) -> None:
    DeltaTable.create(str(tmp_path), Schema.from_arrow(schema), partition_by=by)
    with pytest.raises(OttlaError, match=said):
        commit(open_table(str(tmp_path), into_existing=True), 5)
    assert DeltaTable(str(tmp_path)).version() == 0


@pytest.mark.parametrize("feature", ["rowTracking", "inCommitTimestamp", "clustering"])
def test_feature_that_cannot_be_written_is_refused_before_anything_is(
    tmp_path: Path, feature: str
) -> None:
    """Spark makes them. The commit would fail each time, and could be taken for a lost answer."""
    write_deltalake(str(tmp_path), of_others(3))
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": [feature]}
    log = tmp_path / "_delta_log" / f"{1:020d}.json"
    log.write_text(json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(OttlaError, match=f"it has {feature}, which delta-rs cannot write"):
        open_table(str(tmp_path), into_existing=True)
    assert not (tmp_path / "_ottla").exists()


def test_feature_that_another_program_adds_later_is_refused_before_a_load(tmp_path: Path) -> None:
    commit(open_table(str(tmp_path), "delta"), 10)
    protocol = {"minReaderVersion": 1, "minWriterVersion": 7, "writerFeatures": ["clustering"]}
    log = tmp_path / "_delta_log" / f"{2:020d}.json"
    log.write_text(json.dumps({"protocol": protocol}) + "\n")
    with pytest.raises(OttlaError, match="it has clustering"):
        open_table(str(tmp_path))


def test_constraint_of_a_delta_table_is_refused(tmp_path: Path) -> None:
    write_deltalake(str(tmp_path), of_others(3))
    DeltaTable(str(tmp_path)).alter.add_constraint({"small": "offset < 10"})
    with pytest.raises(OttlaError, match="it has a constraint small"):
        commit(open_table(str(tmp_path), into_existing=True), 5)
    assert DeltaTable(str(tmp_path)).version() == 1


@pytest.mark.parametrize("kind", ["delta", "iceberg"])
def test_columns_that_always_have_a_value_may_be_declared_so(tmp_path: Path, kind: str) -> None:
    place = Place(tmp_path, kind)
    found = of_others(3)
    schema = pa.schema([one.with_nullable(one.name != "offset") for one in found.schema])
    if kind == "delta":
        write_deltalake(str(place.folder), found.cast(schema), mode="overwrite",
                        schema_mode="overwrite")  # fmt: skip
    else:
        table = place.catalog.load_table("shop.orders")
        with table.update_schema(allow_incompatible_changes=True) as update:
            update.update_column("offset", required=True)
    commit(place.open(), 10)
    assert place.rows() == 3 + 20


def test_iceberg_table_whose_columns_or_partitions_do_not_fit_later_is_refused(
    tmp_path: Path,
) -> None:
    """Others may change the table between two loads."""
    place = Place(tmp_path, "iceberg")
    commit(place.open(), 10)
    table = place.catalog.load_table("shop.orders")
    with table.update_schema(allow_incompatible_changes=True) as update:
        update.update_column("value", required=True)
    with table.update_spec() as update:
        update.add_identity("partition")
    with pytest.raises(OttlaError) as refused:
        commit(place.open(), 10)
    assert "its column value is never null, and may be null in the load" in refused.value.message
    assert "it is partitioned" in refused.value.message
    assert place.rows() == 3 + 20


def test_location_without_a_scheme_and_a_path_through_a_link_are_the_same_place(
    tmp_path: Path,
) -> None:
    place = Place(tmp_path, "iceberg")
    place.catalog.create_table("shop.plain", of_others(1).schema, f"{tmp_path}/real/plain")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    options = {**place.options, "catalog.table": "shop.plain"}
    table = open_table(str(tmp_path / "link" / "plain"), None, options, into_existing=True)
    commit(table, 10)
    assert len(place.catalog.load_table("shop.plain").scan().to_arrow()) == 20


def test_table_in_another_catalog_is_refused_with_the_option_for_its_name(tmp_path: Path) -> None:
    """A SQL catalog finds only tables of its own name."""
    place = Place(tmp_path, "iceberg")
    place.options["catalog.name"] = "other"
    with pytest.raises(OttlaError, match=r"catalog other has no table shop.orders .*catalog.name="):
        place.open()


def test_publish_opens_a_table_whose_catalog_is_named(tmp_path: Path) -> None:
    """Options of the catalog are not options of the storage."""
    place = Place(tmp_path, "iceberg")
    commit(place.open(), 10)
    found = open_source(str(place.folder), None, place.options)
    assert (len(found.files), found.left_out) == (2, 1)


def test_iceberg_table_that_lacks_a_column_is_refused(tmp_path: Path) -> None:
    place = Place(tmp_path, "iceberg")
    with place.catalog.load_table("shop.orders").update_schema() as update:
        update.delete_column("headers")
    with pytest.raises(OttlaError, match="it has no column headers"):
        commit(place.open(), 5)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda _folder: None, "holds no Delta or Iceberg table"),
        (lambda folder: commit(open_table(str(folder), "delta"), 5), "was made by ottla"),
        (lambda folder: (folder / "metadata").mkdir(), "its catalog has to be named"),
    ],
)
def test_the_word_is_refused_where_no_other_program_made_a_table(
    tmp_path: Path, make: Callable[[Path], object], said: str
) -> None:
    make(tmp_path)
    with pytest.raises(OttlaError, match=said):
        open_table(str(tmp_path), into_existing=True)
