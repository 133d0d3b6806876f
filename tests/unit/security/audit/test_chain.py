"""A chain of lines, and every way to tamper with one of them."""

import io
import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.security.audit.chain import (
    LINE_BYTES_MAX,
    AuditFile,
    Chain,
    Head,
    file_name,
    find_tail,
    hash_of,
    parse_file_name,
    parse_head,
    parse_head_name,
    parse_line,
)
from ottla.security.audit.verification import ChainCheck, Verified

BROKER = 3


def event(what: str) -> dict[str, object]:
    return {"event": "denied", "broker": BROKER, "principal": what}


def chain_of(count: int) -> list[bytes]:
    chain = Chain()
    return [chain.link(event(f"User:{number}")) for number in range(count)]


def split(content: bytes) -> list[bytes]:
    """As a binary file is read."""
    return list(io.BytesIO(content))


def head_of(lines: list[bytes]) -> Head:
    return Head(len(lines), hash_of(lines[-1].removesuffix(b"\n")))


def verified(
    files: list[list[bytes]],
    *,
    noted: Head | None = None,
    anchor: str | None = None,
    is_whole: bool = True,
    names: list[int] | None = None,
) -> Verified:
    check = ChainCheck(BROKER, is_whole=is_whole, noted=noted, anchor=anchor)
    first = 1
    for index, lines in enumerate(files):
        begin = names[index] if names else first
        check.read(AuditFile(BROKER, begin, file_name(BROKER, begin)), lines)
        first = begin + len(lines)
    return check.finish()


def test_a_line_is_canonical_json_with_the_hash_of_the_one_before() -> None:
    """The bytes are exactly these."""
    chain = Chain()
    first = chain.link({"event": "denied", "principal": "User:ä"})
    assert first == (
        b'{"event":"denied","line":1,"previous":"' + b"0" * 64 + b'","principal":"User:\\u00e4"}\n'
    )
    second = json.loads(chain.link({"event": "stop"}))
    assert second == {"event": "stop", "line": 2, "previous": hash_of(first[:-1])}


def test_an_untouched_chain_is_intact() -> None:
    """In one file or in several, whose names say where they begin."""
    lines = chain_of(9)
    for files in ([lines], [lines[:4], lines[4:]], [lines[:1], lines[1:8], lines[8:]]):
        found = verified(files, noted=head_of(lines))
        assert found == (BROKER, 1, 9, head_of(lines).hash, 0, 0, 0, (), ())


@given(data=st.data(), count=st.integers(2, 8))
def test_a_change_of_any_byte_is_found(data: st.DataObject, count: int) -> None:
    """Whichever line, whichever byte: the head file knows even the last line."""
    lines = chain_of(count)
    noted = head_of(lines)
    index = data.draw(st.integers(0, count - 1))
    line = bytearray(lines[index])
    position = data.draw(st.integers(0, len(line) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda value: value != line[position]))
    line[position] = byte
    content = b"".join([*lines[:index], bytes(line), *lines[index + 1 :]])
    assert not verified([split(content)], noted=noted).intact


@given(data=st.data(), count=st.integers(2, 8))
def test_a_line_that_is_removed_moved_doubled_or_inserted_is_found(
    data: st.DataObject, count: int
) -> None:
    """Also where the forger gives an inserted line the right number and hash."""
    lines = chain_of(count)
    noted = head_of(lines)
    index = data.draw(st.integers(0, count - 1))
    other = data.draw(st.integers(0, count - 1))
    removed = lines[:index] + lines[index + 1 :]
    moved = [*removed[:other], lines[index], *removed[other:]]
    doubled = [*lines[:other], lines[index], *lines[other:]]
    forger = Chain(index, hash_of(lines[index - 1][:-1]) if index else "0" * 64)
    inserted = [*lines[:index], forger.link(event("User:forger")), *lines[index:]]
    for forged in (removed, doubled, inserted, lines[:index]):
        assert not verified([forged], noted=noted).intact
    assert verified([moved], noted=noted).intact == (moved == lines)


@given(data=st.data(), count=st.integers(2, 8))
def test_a_chain_that_is_written_anew_is_found_by_its_anchor_alone(
    data: st.DataObject, count: int
) -> None:
    """A forger who changes a line, all that follow and the head file leaves an intact chain."""
    lines = chain_of(count)
    index = data.draw(st.integers(0, count - 1))
    noted_line = data.draw(st.integers(index, count - 1))
    forger = Chain(index, hash_of(lines[index - 1][:-1]) if index else "0" * 64)
    forged = lines[:index] + [forger.link(event(f"User:x{n}")) for n in range(index, count)]
    assert verified([forged], noted=head_of(forged)).intact
    anchor = hash_of(lines[noted_line][:-1])
    assert verified([lines], anchor=anchor).anchor_line == noted_line + 1
    assert verified([forged], noted=head_of(forged), anchor=anchor).anchor_line == 0


def test_an_anchor_proves_lines_back_to_where_the_chain_is_broken() -> None:
    """Before that, each could have been written anew, though the line of the anchor is there."""
    lines = chain_of(9)
    anchor = hash_of(lines[7][:-1])
    assert verified([lines], anchor=anchor).proven_from == 1
    forger = Chain()
    forged = [forger.link(event(f"User:x{number}")) for number in range(4)] + lines[4:]
    found = verified([forged], anchor=anchor)
    assert (found.intact, found.anchor_line, found.proven_from) == (False, 8, 5)


def test_a_removal_by_retention_that_came_after_the_anchor_is_not_proven_by_it() -> None:
    """The line that excuses the missing ones can be the forger's, so it is named."""
    chain = Chain()
    lines = [chain.link(event(f"User:{number}")) for number in range(9)]
    head = hash_of(lines[3][:-1])
    removal = {"event": "removed", "broker": BROKER, "last": 4, "hash": head}
    forged = [*lines[4:], chain.link(removal)]
    found = verified([forged], names=[5], anchor=hash_of(lines[7][:-1]))
    assert (found.intact, found.anchor_line, found.proven_from) == (True, 8, 5)
    assert found.retention_line == 10


def test_bytes_behind_the_last_line_are_damage_where_another_file_follows() -> None:
    """The broker had gone on, so they are no torn end; at the end of all they may be."""
    lines = chain_of(6)
    insertion = b'{"event":"inserted"}\n'
    (problem,) = verified([[*lines[:3], insertion], lines[3:]], names=[1, 4]).problems
    assert problem.text == "was changed: it is none that a broker writes"
    assert verified([lines[:3], [*lines[3:], insertion]]).intact


def test_a_missing_file_is_found() -> None:
    """The first, one in the middle, and the last, of which the head file knows."""
    lines = chain_of(9)
    noted = head_of(lines)
    parts = {1: lines[:3], 4: lines[3:6], 7: lines[6:]}
    for gone in parts:
        kept = [first for first in parts if first != gone]
        found = verified([parts[first] for first in kept], names=kept, noted=noted)
        assert not found.intact, gone
    alone = verified([parts[4]], names=[4], is_whole=False)
    assert alone.intact
    assert [note.text for note in alone.notes] == ["lines 1 to 3 are in other files"]


def test_a_file_that_retention_removed_is_no_damage() -> None:
    """A later line names its last line and its hash; one that names others excuses nothing."""
    chain = Chain()
    before = [chain.link(event("User:a")) for _ in range(3)]
    head = chain.head
    removal = {"event": "removed", "broker": BROKER, "last": 3, "hash": head}
    after = [chain.link(event("User:b")), chain.link(removal)]
    found = verified([after], names=[4])
    assert found.intact
    assert [note.text for note in found.notes] == [
        "lines 1 to 3 were removed by retention, as line 5 says"
    ]
    assert not verified([[before[1], before[2], *after]], names=[2]).intact


def test_a_torn_line_is_a_note_where_the_broker_recorded_it() -> None:
    """Garbage of other bytes is damage; at the end it is what the broker writes just now."""
    chain = Chain()
    lines = [chain.link(event("User:a"))]
    torn = b'{"event":"den\nied'
    record = {"event": "torn", "broker": BROKER, "bytes": len(torn), "sha256": hash_of(torn)}
    after = chain.link(record)
    good = split(lines[0] + torn + b"\n" + after)
    found = verified([good])
    assert found.intact
    assert len(found.notes) == 1
    forged = split(lines[0] + torn.replace(b"den", b"DEN") + b"\n" + after)
    assert not verified([forged]).intact
    assert verified([[*lines, torn]]).intact
    assert not verified([[*lines, torn, b"\n"]], noted=Head(2, "0" * 64)).intact


def test_what_the_broker_found_cut_off_stays_on_record() -> None:
    """The chain goes on behind the numbers that are gone."""
    chain = Chain()
    lines = [chain.link(event("User:a"))]
    chain.skip(5)
    missing = {"event": "missing", "broker": BROKER, "first": 2, "last": 5}
    lines.append(chain.link(missing))
    (problem,) = verified([lines]).problems
    assert problem.text == "the broker found that lines 2 to 5 had been cut off"


def test_hostile_lines_are_damage_and_no_crash() -> None:
    """Nested, huge, of other types, or without the fields they need."""
    hostile = (
        b"[" * 100_000,
        b'{"line":' + b"9" * 5000 + b',"previous":""}',
        b'{"line":true,"previous":""}',
        b'{"line":1,"previous":null}',
        b"\xff\x00",
        b"",
        b'{"line":1, "previous":""}',
        b"{}" + b" " * LINE_BYTES_MAX,
    )
    for line in hostile:
        assert parse_line(line) is None, line[:30]
        assert not verified([[line + b"\n", *chain_of(1)]]).intact
    chain = Chain()
    odd = [chain.link({"event": name, "broker": "x"}) for name in ("missing", "removed", "torn")]
    assert not verified([odd]).intact


@given(torn=st.binary(max_size=60), count=st.integers(0, 4))
@example(torn=b"\n", count=1)
@example(torn=b"\n\n", count=1)
@example(torn=b"x\n", count=0)
def test_the_end_of_a_file_is_found_whatever_is_behind_it(torn: bytes, count: int) -> None:
    """What is behind the last line is torn, and recorded so that verification knows it."""
    lines = chain_of(count)
    content = b"".join(lines) + torn
    tail = find_tail(content)
    assert (tail.last.number if tail.last else 0) == count
    chain = Chain(count, tail.head)
    content += tail.missing
    if tail.torn is not None:
        record = {"bytes": len(tail.torn), "sha256": hash_of(tail.torn)}
        content += chain.link({"event": "torn", "broker": BROKER, **record})
    content += chain.link(event("User:later"))
    found = verified([split(content)])
    assert found.intact, found
    assert len(found.notes) == (tail.torn is not None)


def test_a_line_that_lacks_its_newline_alone_is_whole() -> None:
    """The crash came between the line and its end."""
    (line,) = chain_of(1)
    tail = find_tail(line[:-1])
    assert tail.last is not None
    assert (tail.last.number, tail.torn, tail.missing) == (1, None, b"\n")


def test_a_line_that_would_be_too_long_loses_its_details() -> None:
    """The rest of it stands."""
    chain = Chain()
    line = chain.link({**event("User:a"), "detail": {"settings": ["x" * LINE_BYTES_MAX]}})
    read = parse_line(line[:-1])
    assert read is not None
    assert read.fields["principal"] == "User:a"
    assert read.fields["detail"]["too_long_bytes"] > LINE_BYTES_MAX


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("ottla-audit-3-00000000000000000042.log", (3, 42)),
        ("ottla-audit-3-42.log", None),
        ("ottla-audit-3.head", None),
        ("flights-0", None),
    ],
)
def test_names_of_files_say_broker_and_first_line(
    name: str, expected: tuple[int, int] | None
) -> None:
    """Other names in the folder are none."""
    found = parse_file_name(name)
    assert (None if found is None else (found.broker, found.first)) == expected
    assert parse_head_name(name) == (3 if name.endswith(".head") else None)
    assert parse_head(b"7 nonsense") is None
    assert parse_head(b"7 " + b"a" * 64 + b"\n") == (7, "a" * 64)
