"""A verification that is divided finds what one in a single piece does."""

import pickle
import random
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import ottla.lake
from ottla.lake.check.ranges import RangeCheck, plan_tasks
from ottla.lake.model.live import live_after
from ottla.lake.model.manifest import DataFile, Manifest
from ottla.lake.tables.opening import existing_table, open_table
from tests.unit.lake.tables import commit


def pickled(tasks: Sequence[Any]) -> list[Any]:
    """Run tasks in this process as Spark would: from pickled forms, the results pickled, too."""
    order = list(range(len(tasks)))
    random.Random(3).shuffle(order)
    done = {at: pickle.dumps(pickle.loads(pickle.dumps(tasks[at])).run()) for at in order}
    return [pickle.loads(done[at]) for at in range(len(tasks))]


def make(folder: Path, kind: str = "parquet") -> None:
    table = open_table(str(folder), kind)
    for _ in range(3):
        commit(table, 10)


def planned(folder: Path, split_bytes: int) -> tuple[list[RangeCheck], list[DataFile]]:
    table = existing_table(str(folder))
    manifests: list[Manifest] = [one.manifest for one in table.links() if one.manifest]
    live: dict[str, DataFile] = {}
    for manifest in manifests:
        live_after(live, manifest)
    files = list(live.values())
    return plan_tasks(table.store, manifests, files, [], split_bytes=split_bytes), files


@pytest.mark.parametrize("kind", ["parquet", "delta", "iceberg"])
def test_jobs_elsewhere_find_what_this_process_does(tmp_path: Path, kind: str) -> None:
    """The same report, in the same order, of a sound table and of a damaged one."""
    make(tmp_path, kind)
    here = ottla.lake.verify(str(tmp_path), bootstrap=None)
    assert (here.problems, here.rows) == ([], 60)
    assert ottla.lake.verify(str(tmp_path), bootstrap=None, runner=pickled) == here

    files = [Path(path) for path in ottla.lake.files(str(tmp_path))]
    files[0].unlink()
    files[3].write_bytes(b"rubbish")
    files[4].write_bytes(files[5].read_bytes())
    here = ottla.lake.verify(str(tmp_path), bootstrap=None)
    assert {Path(path).name for path in (files[0], files[3], files[4])} <= {
        Path(problem.split()[0]).name for problem in here.problems
    }
    assert ottla.lake.verify(str(tmp_path), bootstrap=None, runner=pickled) == here


def test_each_file_and_each_offset_is_of_one_job(tmp_path: Path) -> None:
    make(tmp_path)
    jobs, files = planned(tmp_path, 1 << 30)

    held = [one.file.path for job in jobs for one in job.files]
    assert sorted(held) == sorted(file.path for file in files)
    ranges = [
        (job.wanted.partition, job.wanted.start, job.wanted.end) for job in jobs if job.wanted
    ]
    assert ranges == [(p, start, start + 10) for p in (0, 1) for start in (0, 10, 20)]


def test_a_large_load_is_cut_between_its_files(tmp_path: Path) -> None:
    """At sizes, not at loads; files that overlap stay together."""
    make(tmp_path)
    table = existing_table(str(tmp_path))
    (first, *_) = [one.manifest for one in table.links() if one.manifest]
    (ledger, _) = first.ledgers
    parts = [
        replace(first.files[0], path=f"data/{at}", start=at, end=at + width, size_bytes=100)
        for at, width in ((0, 10), (20, 10), (30, 15), (40, 10), (50, 50))
    ]
    one_load = replace(first, files=tuple(parts), ledgers=(replace(ledger, end=100),))

    def cut(split_bytes: int) -> list[tuple[int, int, int]]:
        jobs = plan_tasks(table.store, [one_load], parts, [], split_bytes=split_bytes)
        return [(j.wanted.start, j.wanted.end, len(j.files)) for j in jobs if j.wanted]

    assert cut(1000) == [(0, 100, 5)]
    assert cut(250) == [(0, 30, 2), (30, 50, 2), (50, 100, 1)]
    assert cut(1) == [(0, 20, 1), (20, 30, 1), (30, 50, 2), (50, 100, 1)]


def test_a_file_that_lies_in_no_range_is_checked_for_itself(tmp_path: Path) -> None:
    make(tmp_path)
    table = existing_table(str(tmp_path))
    (first, *_) = [one.manifest for one in table.links() if one.manifest]
    odd = replace(first.files[0], path="data/odd", partition=7)
    jobs = plan_tasks(table.store, [replace(first, files=(*first.files, odd))], [odd], [])

    assert [(job.wanted, job.files[0].file) for job in jobs if job.files] == [(None, odd)]
