"""A load builds on a table that contradicts itself only by an operator's word, on record."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from rig.nodes import Node

from ottla.base.errors import OttlaError
from ottla.lake import load, run_here, verify
from ottla.lake.model.manifest import seal, unseal


def _loaded(node: Node, topic: str, folder: Path, **options: str) -> int:
    done = load(topic, str(folder), bootstrap=node.bootstrap, runner=run_here, **options)  # type: ignore[arg-type]
    return done.rows


def _rewrite(folder: Path, version: int, change: Callable[[dict], None]) -> None:
    """Change a manifest and seal it again; the heads go, which would name the old one."""
    path = folder / "_ottla" / "manifests" / f"{version:020d}.json"
    fields, _ = unseal(path.read_bytes())
    change(fields)
    path.write_bytes(seal(fields))
    for head in (folder / "_ottla" / "heads").iterdir():
        named, _ = unseal(head.read_bytes())
        if named["version"] == version:
            named["manifest"] = unseal(path.read_bytes())[1]
            head.write_bytes(seal(named))


@pytest.fixture
def table(node: Node, make_topic, produce, tmp_path: Path) -> tuple[str, Path]:
    topic, folder = make_topic(node, 1), tmp_path / "table"
    produce(node, topic, 0, 100)
    _loaded(node, topic, folder)
    produce(node, topic, 100, 150)
    return topic, folder


def test_positions_that_were_moved_stop_a_load_until_overridden(
    node: Node, table: tuple[str, Path], produce
) -> None:
    """The load then goes on from where the ledgers end: nothing is doubled or left out."""
    topic, folder = table
    _rewrite(folder, 1, lambda fields: fields["positions"].update({"0": 60}))
    with pytest.raises(OttlaError, match="its position of partition 0 is 60, and 100") as error:
        _loaded(node, topic, folder)
    assert "--override REASON" in error.value.message
    assert _loaded(node, topic, folder, override="restored by hand, ticket 7") == 50

    produce(node, topic, 150, 160)
    assert _loaded(node, topic, folder) == 10
    found = verify(str(folder), bootstrap=node.bootstrap)
    assert (found.problems, found.rows, found.compared) == ([], 160, 160)
    assert any("position of partition 0 is 60" in one for one in found.overridden)
    assert "reason: restored by hand, ticket 7 (overridden by load 2)" in found.overridden


def test_a_ledger_that_does_not_balance_is_overridden_by_name(
    node: Node, table: tuple[str, Path]
) -> None:
    """Only what was on record then: what is altered later is found."""
    topic, folder = table

    def unbalance(fields: dict) -> None:
        fields["ledgers"][0]["control"] += 3

    _rewrite(folder, 1, unbalance)
    with pytest.raises(OttlaError, match="load 1 left offsets unexplained"):
        _loaded(node, topic, folder)
    assert _loaded(node, topic, folder, override="known") == 50
    assert verify(str(folder), bootstrap=None).problems == []

    _rewrite(folder, 2, unbalance)
    problems = verify(str(folder), bootstrap=None).problems
    assert any("load 2 left offsets unexplained" in one for one in problems)


def test_an_override_of_nothing_puts_nothing_on_record(node: Node, table: tuple[str, Path]) -> None:
    """The option may stay in a script."""
    topic, folder = table
    assert _loaded(node, topic, folder, override="always") == 50
    assert _loaded(node, topic, folder, override="always") == 0
    assert verify(str(folder), bootstrap=node.bootstrap).overridden == []


def test_a_missing_manifest_cannot_be_overridden(node: Node, table: tuple[str, Path]) -> None:
    """Where the table stands is not known without it."""
    topic, folder = table
    _loaded(node, topic, folder)
    (folder / "_ottla" / "manifests" / f"{1:020d}.json").unlink()
    with pytest.raises(OttlaError, match="is missing"):
        _loaded(node, topic, folder, override="never mind")


def test_what_is_overridden_stands_in_the_certificate(node: Node, table: tuple[str, Path]) -> None:
    """So that its reader knows."""
    from ottla.lake import certificate

    topic, folder = table
    _rewrite(folder, 1, lambda fields: fields["positions"].update({"0": 60}))
    _loaded(node, topic, folder, override="ticket 7")
    verdict = certificate(str(folder), bootstrap=None)["verdict"]
    assert verdict["proven"] is True
    assert "reason: ticket 7 (overridden by load 2)" in json.dumps(verdict["overridden"])


def _rewrite_logged(folder: Path, version: int, change: Callable[[dict], None]) -> None:
    """Change a manifest that the log of a table names, and its digest wherever it stands."""
    manifests = folder / "_ottla" / "manifests"
    [path] = manifests.glob(f"{version:020d}-*.json")
    fields, old = unseal(path.read_bytes())
    change(fields)
    content = seal(fields)
    new = unseal(content)[1]
    path.unlink()
    (manifests / f"{version:020d}-{new}.json").write_bytes(content)
    for head in (folder / "_ottla" / "heads").iterdir():
        named, _ = unseal(head.read_bytes())
        if named["manifest"] == old:
            named.update(manifest=new)
            head.write_bytes(seal(named))
    for log in folder.rglob("*.json"):
        if "_ottla" in log.parts:
            continue
        text = log.read_text().replace(old, new)
        # Delta's application transaction holds the first 60 bits as a number.
        log.write_text(text.replace(str(int(old[:15], 16)), str(int(new[:15], 16))))


@pytest.mark.parametrize("table_format", ["delta", "iceberg"])
def test_an_override_is_honoured_by_every_later_load_in_every_format(
    node: Node, make_topic, produce, tmp_path: Path, table_format: str
) -> None:
    """A table in Delta or Iceberg goes on as our own does, and says what it built on."""
    topic, folder = make_topic(node, 1), tmp_path / "table"
    produce(node, topic, 0, 100)
    _loaded(node, topic, folder, format=table_format)
    produce(node, topic, 100, 150)

    def unbalance(fields: dict) -> None:
        fields["ledgers"][0]["control"] += 3

    _rewrite_logged(folder, 1, unbalance)
    with pytest.raises(OttlaError, match="load 1 left offsets unexplained") as error:
        _loaded(node, topic, folder)
    assert "--override REASON" in error.value.message
    assert _loaded(node, topic, folder, override="ticket 7") == 50

    produce(node, topic, 150, 160)
    assert _loaded(node, topic, folder) == 10
    found = verify(str(folder), bootstrap=node.bootstrap)
    assert (found.problems, found.rows, found.compared) == ([], 160, 160)
    assert "reason: ticket 7 (overridden by load 2)" in found.overridden
