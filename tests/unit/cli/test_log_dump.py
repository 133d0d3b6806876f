"""`ottla log dump` shows every batch that can be read, whatever stands between them."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from ottla.cli.log import dump
from ottla.record.builder import BatchBuilder

BATCHES = 4


def written(folder: Path) -> tuple[Path, int]:
    """A segment of equal batches of one record, and their size."""
    content = bytearray()
    for offset in range(BATCHES):
        builder = BatchBuilder(base_offset=offset)
        builder.append(0, b"key", b"value %d" % offset)
        content += builder.build()
    file = folder / f"{0:020d}.log"
    file.write_bytes(content)
    return file, len(content) // BATCHES


def shown(file: Path, *arguments: str) -> tuple[int, str, str]:
    ran = CliRunner().invoke(dump, [str(file), *arguments])
    return ran.exit_code, ran.stdout, ran.stderr


@pytest.mark.parametrize(
    ("place", "content"),
    [
        (8, b"\x7f"),
        (8, b"\0\0\0\0"),
        (11, b"\xff"),
        (16, b"\x01"),
        (57, b"\xff"),
        (0, b"\xff" * 61),
    ],
)
def test_batches_behind_a_bad_header_are_shown(tmp_path: Path, place: int, content: bytes) -> None:
    """Its length, its magic number, its count, or all of it."""
    file, size = written(tmp_path)
    raw = bytearray(file.read_bytes())
    raw[size + place : size + place + len(content)] = content
    file.write_bytes(raw)
    code, out, err = shown(file, "-o", "json")
    assert code == 1
    assert {0, 2, 3} <= {row["base_offset"] for row in json.loads(out)}
    assert "are no batch" in err
    assert "torn" not in err


def test_records_of_a_damaged_batch_are_told_of(tmp_path: Path) -> None:
    """A line that says so, and the records of all others."""
    file, size = written(tmp_path)
    raw = bytearray(file.read_bytes())
    raw[size + 61] ^= 0x7F
    file.write_bytes(raw)
    code, out, _ = shown(file, "--records")
    assert code == 1
    lines = [json.loads(line) for line in out.splitlines()]
    assert [line["offset"] for line in lines] == [0, 1, 2, 3]
    assert "unreadable" in lines[1]
    assert lines[3]["value"] == "value 3"


def test_a_torn_end_is_no_damage(tmp_path: Path) -> None:
    """As it was: the broker cuts it off."""
    file, _ = written(tmp_path)
    file.write_bytes(file.read_bytes()[:-5])
    code, out, err = shown(file, "-o", "json")
    assert code == 0
    assert [row["base_offset"] for row in json.loads(out)] == [0, 1, 2]
    assert "a torn end" in err
