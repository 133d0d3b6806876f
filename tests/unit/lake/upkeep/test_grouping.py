"""Laws of compaction's choice: neighbours only, never above the target, nothing large."""

import random

import pytest

from ottla.lake.model.manifest import DataFile, TableSchema
from ottla.lake.write.compact import groups


def file(partition: int, start: int, end: int, size: int) -> DataFile:
    return DataFile(f"data/{partition}-{start}", partition, start, end, 1, size, "0" * 32, "")


def chosen(files: list[DataFile], target: int, old: tuple[DataFile, ...] = ()) -> list[list[int]]:
    hashed = TableSchema(1, (), {"keep_raw": False})
    columns = {one.path: hashed if one in old else None for one in files}
    return [[one.start for one in group] for group in groups(files, columns, None, target)]


def test_neighbours_fill_up_to_the_target() -> None:
    files = [file(0, start, start + 10, 30) for start in (30, 0, 10, 20)]
    assert chosen(files, 100) == [[0, 10, 20]]
    assert chosen(files, 120) == [[0, 10, 20, 30]]
    assert chosen(files, 59) == []


def test_a_large_file_keeps_its_neighbours_apart() -> None:
    files = [file(0, 0, 10, 1), file(0, 10, 20, 76), file(0, 20, 30, 1)]
    assert chosen(files, 100) == []


def test_partitions_stay_apart() -> None:
    assert chosen([file(0, 0, 10, 1), file(1, 0, 10, 1)], 100) == []


def test_files_with_older_columns_go_with_the_newest_ones() -> None:
    """They are written in the columns that the table has now."""
    files = [file(0, start, start + 10, 1) for start in (0, 10)]
    columns = {files[0].path: TableSchema(1, ()), files[1].path: TableSchema(2, ())}
    assert groups(files, columns, TableSchema(2, ()), 100) == [tuple(files)]


def test_files_without_the_raw_columns_that_others_have_stay_as_they_are() -> None:
    """Those on both sides of them do not become one, since their offsets do not touch."""
    files = [file(0, start, start + 10, 1) for start in (0, 10, 20, 30)]
    assert chosen(files, 100, old=(files[1],)) == [[20, 30]]


@pytest.mark.parametrize("seed", range(20))
def test_any_files_in_any_order(seed: int) -> None:
    chance = random.Random(seed)
    files = []
    for partition in range(3):
        at = 0
        for _ in range(chance.randrange(20)):
            at += chance.choice([0, 0, 5])
            end = at + chance.randrange(1, 50)
            files.append(file(partition, at, end, chance.choice([1, 10, 60, 90, 200])))
            at = end
    chance.shuffle(files)
    columns = dict.fromkeys((one.path for one in files), None)
    found = groups(files, columns, None, 100)
    grouped = [one for group in found for one in group]
    assert len(grouped) == len({one.path for one in grouped})
    for group in found:
        assert len(group) > 1
        assert sum(one.size_bytes for one in group) <= 100
        between = [
            one
            for one in files
            if one.partition == group[0].partition and group[0].start <= one.start < group[-1].end
        ]
        assert sorted(between, key=lambda one: one.start) == list(group)
