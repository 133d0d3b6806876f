"""Lines of files, cut exactly."""

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ottla.cli.produce.lines import cut, lines_of, size_of


def read(*paths: Path) -> tuple[list[bytes], int]:
    """All lines, and the number of bytes told of."""
    counted: list[int] = []

    async def main() -> list[bytes]:
        return [line async for some in lines_of(paths, counted.append) for line in some]

    return asyncio.run(main()), sum(counted)


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", []),
        (b"\n", [b""]),
        (b"a", [b"a"]),
        (b"a\n", [b"a"]),
        (b"a\n\nb", [b"a", b"", b"b"]),
        (b"a\r\nb\x00\xff\n", [b"a\r", b"b\x00\xff"]),
    ],
)
def test_line_ends_at_a_line_feed_and_nowhere_else(
    tmp_path: Path, content: bytes, expected: list[bytes]
) -> None:
    """Other bytes are part of the line, and the last line feed ends one rather than begins one."""
    file = tmp_path / "file"
    file.write_bytes(content)
    assert read(file) == (expected, len(content))


def test_files_do_not_run_into_each_other(tmp_path: Path) -> None:
    """A last line without its line feed ends with its file."""
    first, second = tmp_path / "first", tmp_path / "second"
    first.write_bytes(b"a\nb")
    second.write_bytes(b"c\n")
    assert read(first, second)[0] == [b"a", b"b", b"c"]
    assert size_of([first, second]) == 5
    assert size_of([Path("/dev/null")]) is None


@given(st.lists(st.binary(max_size=9).map(lambda line: line.replace(b"\n", b"")), max_size=9))
def test_lines_are_whole_however_the_file_is_read(found: list[bytes]) -> None:
    """Where one read ends and the next begins is nowhere to be seen."""
    chunks = b"".join(line + b"\n" for line in found)

    async def bytewise() -> list[bytes]:
        async def source() -> AsyncGenerator[bytes]:
            for place in range(len(chunks)):
                yield chunks[place : place + 1]

        counted: list[int] = []
        return [line async for some in cut(source(), counted.append) for line in some]

    assert asyncio.run(bytewise()) == found
