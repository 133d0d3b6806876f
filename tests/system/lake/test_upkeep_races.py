"""Upkeep and loads meet: no load is lost to upkeep, and of two loads one still is."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rig.nodes import Node

import ottla.lake
from ottla.base.errors import OttlaError
from ottla.lake import Decode, run_here
from ottla.lake import Format as ValueFormat
from ottla.lake.tables.formats import Format
from ottla.lake.tables.opening import existing_table
from ottla.lake.tables.table import CommitConflict
from tests.system.lake.runners import after
from tests.unit.lake.upkeep.test_compacting import FORMATS, table_rows

Produce = Callable[..., None]
MakeTopic = Callable[..., str]


class Table:
    """A table of a topic with one partition, and what is done to it."""

    def __init__(self, node: Node, topic: str, folder: Path, produce: Produce) -> None:
        self.node, self.topic, self.folder = node, topic, folder
        self._produce = produce
        self._written = 0

    def write(self, count: int = 10) -> None:
        self._produce(self.node, self.topic, self._written, self._written + count)
        self._written += count

    def load(self, **more: Any) -> ottla.lake.LoadResult:
        return ottla.lake.load(
            *(self.topic, str(self.folder)), bootstrap=self.node.bootstrap, runner=run_here, **more
        )

    def replace(self, start: str = "0:0", end: str = "0:10", **more: Any) -> None:
        ottla.lake.replace(
            *(self.topic, str(self.folder)),
            start=start,
            end=end,
            bootstrap=self.node.bootstrap,
            runner=run_here,
            **more,
        )

    def compact(self) -> None:
        assert ottla.lake.compact(str(self.folder), master="here").manifest is not None

    def compact_and_expire(self) -> None:
        self.compact()
        assert ottla.lake.expire(str(self.folder), keep=1).removed

    def kinds(self) -> list[str]:
        return [one.kind for one in existing_table(str(self.folder)).history()]

    def rows(self, kind: str = "parquet") -> int:
        """As verified against the topic, and read by others."""
        found = ottla.lake.verify(str(self.folder), bootstrap=self.node.bootstrap)
        assert (found.problems, found.uncounted) == ([], [])
        assert len(table_rows(self.folder, kind)) == found.rows == found.compared
        return found.rows


@pytest.fixture
def table(node: Node, make_topic: MakeTopic, produce: Produce, tmp_path: Path) -> Table:
    return Table(node, make_topic(node, partitions=1), tmp_path / "table", produce)


def at(step: str, deed: Callable[[], object]) -> Callable[[str], None]:
    """Do something once, at a step."""
    left = [deed]

    def on_step(done: str) -> None:
        if done == step and left:
            left.pop()()

    return on_step


@FORMATS
def test_a_load_goes_on_top_of_the_upkeep_that_came_first(table: Table, kind: Format) -> None:
    """A compaction and an expiry, both after it was planned and read."""
    for _ in range(2):
        table.write()
        table.load(format=kind)
    table.write()

    def upkeep() -> None:
        table.compact()
        assert ottla.lake.expire(str(table.folder), keep=1).removed

    done = table.load(watch=ottla.lake.Observer(on_step=at("files written", upkeep)))
    assert done.manifest is not None
    assert (done.manifest.version, done.rows) == (4, 10)
    assert table.kinds() == ["load", "load", "compaction", "load"]
    assert table.rows(kind) == 30
    assert table.load().removed == ()


def test_also_of_a_replacement_unless_it_changes_columns(table: Table) -> None:
    for _ in range(2):
        table.write()
        table.load()
    table.write()
    lost = next(iter(existing_table(str(table.folder)).live_files()))
    (table.folder / lost.path).unlink()
    table.load(watch=ottla.lake.Observer(on_step=at("files written", table.replace)))
    assert table.kinds() == ["load", "load", "replacement", "load"]
    assert table.rows() == 30
    table.write()
    typed = Decode(value=ValueFormat("string"))
    with pytest.raises(CommitConflict):
        table.load(
            watch=ottla.lake.Observer(
                on_step=at("files written", lambda: table.replace(decode=typed))
            )
        )
    assert table.kinds()[-1] == "replacement"


@FORMATS
def test_of_two_loads_one_is_lost_also_with_upkeep_between(table: Table, kind: Format) -> None:
    for _ in range(2):
        table.write()
        table.load(format=kind)
    table.write()

    def both() -> None:
        table.compact()
        table.load()
        table.compact()

    with pytest.raises(CommitConflict, match="another load committed"):
        table.load(watch=ottla.lake.Observer(on_step=at("files written", both)))
    assert table.kinds() == ["load", "load", "compaction", "load", "compaction"]
    assert table.rows(kind) == 30


TYPED = Decode(value=ValueFormat("string"))


@FORMATS
@pytest.mark.parametrize("step", ["planned", "files written", "files looked up"])
def test_a_replacement_looks_up_files_again_that_were_compacted(
    table: Table, kind: Format, step: str
) -> None:
    """Also those that stick out of its range, and where the old ones have expired."""
    for _ in range(2):
        table.write()
        table.load(format=kind)
    table.replace(
        "0:3",
        "0:13",
        decode=TYPED,
        watch=ottla.lake.Observer(on_step=at(step, table.compact_and_expire)),
    )
    assert table.kinds()[:3] == ["load", "load", "compaction"]
    assert table.kinds()[-1] == "replacement"
    assert table.rows(kind) == 20


@FORMATS
@pytest.mark.parametrize("comes", ["before", "after"])
def test_upkeep_looks_up_files_again_where_a_commit_comes_between(
    table: Table, kind: Format, comes: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction, beside the look at what readers see."""
    for _ in range(2):
        table.write()
        table.load(format=kind)
    opened = type(existing_table(str(table.folder)))
    look, left = opened.live_paths, [table.compact]

    def live_paths(self: Any) -> Any:
        deeds = [left.pop()] if left else []
        found = () if comes == "before" else look(self)
        for deed in deeds:
            deed()
        return found or look(self)

    monkeypatch.setattr(opened, "live_paths", live_paths)
    table.replace("0:3", "0:13")
    left.append(table.compact)
    table.write()
    table.load()
    assert ottla.lake.compact(str(table.folder), master="here").manifest is None
    assert table.rows(kind) == 30


@FORMATS
def test_a_compaction_whose_files_expire_is_lost(table: Table, kind: Format) -> None:
    """They are no damage of the table: another compaction has removed them."""
    for _ in range(2):
        table.write()
        table.load(format=kind)
    with pytest.raises(CommitConflict, match="another commit"):
        ottla.lake.compact(
            str(table.folder),
            master="here",
            watch=ottla.lake.Observer(on_step=at("planned", table.compact_and_expire)),
        )
    assert table.rows(kind) == 20


@FORMATS
def test_files_that_expire_while_they_are_verified_are_no_problem(
    table: Table, kind: Format
) -> None:
    for _ in range(2):
        table.write()
        table.load(format=kind)
    deeds = [table.compact_and_expire]
    found = ottla.lake.verify(
        str(table.folder),
        bootstrap=table.node.bootstrap,
        runner=after(lambda: deeds.pop()() if deeds else None),
    )
    assert (found.problems, found.rows, found.compared) == ([], 20, 20)
    assert (found.loads, found.other_commits) == (2, {"compaction": 1})


@FORMATS
def test_a_verification_that_expiries_outrun_says_so(table: Table, kind: Format) -> None:
    """And a file that is missing, though it counts, is a problem beside an expiry, too."""
    for _ in range(2):
        table.write()
        table.load(format=kind)

    def more() -> None:
        table.write()
        table.load()
        table.compact_and_expire()

    with pytest.raises(OttlaError, match="removed and expired before they were read"):
        ottla.lake.verify(str(table.folder), bootstrap=None, runner=after(more))
    table.write()
    table.load()
    (*_, last) = existing_table(str(table.folder)).live_files()
    (table.folder / last.path).unlink()
    found = ottla.lake.verify(str(table.folder), bootstrap=None)
    assert [one for one in found.problems if f"{last.path} is missing" in one]


@FORMATS
def test_a_commit_beside_the_reading_of_a_table_is_no_problem(
    table: Table, kind: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction and an expiry after the manifests were read, before the format's log is."""
    for _ in range(2):
        table.write()
        table.load(format=kind)
    opened = type(existing_table(str(table.folder)))
    audit, deeds = opened.audit, [table.compact_and_expire]

    def later(self: Any, chain: Any) -> Any:
        if deeds:
            deeds.pop()()
        return audit(self, chain)

    monkeypatch.setattr(opened, "audit", later)
    assert table.rows(kind) == 20


@FORMATS
def test_loads_and_compactions_at_once(table: Table, kind: Format) -> None:
    """A writer and a compactor run against each other; no load fails, and all rows are there."""
    table.write()
    table.load(format=kind)
    stop, troubles = threading.Event(), []

    def compactor() -> None:
        while not stop.is_set():
            try:
                ottla.lake.compact(str(table.folder), master="here")
            except CommitConflict:
                pass
            except BaseException as error:  # noqa: BLE001  # For the test to tell.
                troubles.append(error)
                return

    other = threading.Thread(target=compactor)
    other.start()
    try:
        for _ in range(8):
            table.write()
            assert table.load().rows == 10
    finally:
        stop.set()
        other.join()
    assert troubles == []
    assert table.rows(kind) == 90
