"""How a table stands, from its manifests and the topic's ends."""

from dataclasses import replace
from pathlib import Path

from ottla.lake.edges.status import commits, ledger_of_table, on_record, table_status, terms_of
from ottla.lake.store.local import LocalStore
from ottla.lake.tables.own import OwnTable
from ottla.ledger.partition import PartitionLedger, Unreadable
from tests.unit.lake.tables import commit, written


def table(folder: Path) -> OwnTable:
    return OwnTable(LocalStore(folder)).writable()


def test_sums_are_those_of_the_files_that_count(tmp_path: Path) -> None:
    """Files without a manifest are orphans."""
    own = table(tmp_path)
    manifests = [commit(own, 30), commit(own, 20)]
    stray = written(own, 5, "f" * 32, partitions=1).files[0].path
    present = [file.path for one in manifests for file in one.files] + [stray]
    found = table_status("/lake", "parquet", manifests, present, None, {}, 10)

    assert (found.rows, found.files, found.loads, found.commits) == (100, 4, 2, 2)
    assert found.size_bytes == sum(f.size_bytes for one in manifests for f in one.files)
    assert found.orphans == (stray,)
    assert (found.lag_offsets, found.lag_s) == (None, None)


def test_lag_is_what_the_topic_has_beyond_the_positions(tmp_path: Path) -> None:
    """Also of partitions that the table has nothing of yet."""
    manifests = [commit(table(tmp_path), 30)]
    found = table_status(
        "/lake", "parquet", manifests, [], {0: 30, 1: 45, 2: 7}, {1: 1_000, 2: 4_000}, 6_000
    )

    assert [(p.partition, p.lag_offsets, p.lag_s) for p in found.partitions] == [
        (0, 0, None),
        (1, 15, 5.0),
        (2, 7, 2.0),
    ]
    assert (found.lag_offsets, found.lag_s) == (22, 5.0)


def test_table_that_is_up_to_date_has_no_lag(tmp_path: Path) -> None:
    manifests = [commit(table(tmp_path), 30)]
    found = table_status("/lake", "parquet", manifests, [], {0: 30, 1: 30}, {}, 6_000)
    assert (found.lag_offsets, found.lag_s) == (0, 0.0)


def test_empty_table_is_told(tmp_path: Path) -> None:
    """One whose first load never counted."""
    found = table_status("/lake", "delta", [], ["data/x.parquet"], {0: 3}, {}, 1)
    assert (found.rows, found.topic, found.orphans) == (0, None, ("data/x.parquet",))


def test_commits_tell_what_is_on_record(tmp_path: Path) -> None:
    """All that an operator, or the topic, made of a load."""
    one = replace(
        commit(table(tmp_path), 30),
        accepted_loss={1: 20},
        overridden=("the manifest 3: wrong sums; built on because: restored",),
        skipped=(Unreadable(0, 5, 9, "bad checksum"),),
    )
    assert on_record(one) == [
        "20 offsets of partition 1 lost, which was accepted",
        "overridden: the manifest 3: wrong sums; built on because: restored",
        "4 offsets left out as unreadable",
    ]
    (line,) = commits([one])
    assert (line.version, line.kind, line.rows, line.files) == (1, "load", 60, 2)
    assert line.row()["time"] == "1970-01-01T00:00:00.001Z"


def test_ledger_of_a_table_joins_its_loads(tmp_path: Path) -> None:
    own = table(tmp_path)
    found = ledger_of_table([commit(own, 30), commit(own, 20)])
    assert found == {
        0: PartitionLedger(0, 0, 50, loaded=50),
        1: PartitionLedger(1, 0, 50, loaded=50),
    }
    assert terms_of(list(found.values()))["loaded"] == 100
