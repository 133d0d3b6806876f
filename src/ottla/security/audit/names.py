"""Names of a broker's audit files: `ottla-audit-<broker>-<first line>.log`, and its head file."""

import re
from typing import NamedTuple

_FILE = re.compile(r"ottla-audit-(\d+)-(\d{20})\.log")
_HEAD_FILE = re.compile(r"ottla-audit-(\d+)\.head")
_HEAD = re.compile(r"([0-9]{1,20}) ([0-9a-f]{64})\n?")


class AuditFile(NamedTuple):
    """A file of a broker's chain. Sorted, files are in the order of their lines."""

    broker: int
    # The number of its first line.
    first: int
    name: str


class Head(NamedTuple):
    """The last line of a chain, as it was noted outside the log: its number and its hash."""

    number: int
    hash: str


def file_name(broker: int, first: int) -> str:
    """The file that begins with line `first`."""
    return f"ottla-audit-{broker}-{first:020}.log"


def head_name(broker: int) -> str:
    """The file in which the broker notes the last line that is on the disk."""
    return f"ottla-audit-{broker}.head"


def parse_file_name(name: str) -> AuditFile | None:
    """None where it is no audit file's name."""
    found = _FILE.fullmatch(name)
    return None if found is None else AuditFile(int(found[1]), int(found[2]), name)


def head_text(head: Head) -> bytes:
    """The content of the head file."""
    return f"{head.number} {head.hash}\n".encode()


def parse_head_name(name: str) -> int | None:
    """The broker whose head file that is; None where it is no head file's name."""
    found = _HEAD_FILE.fullmatch(name)
    return None if found is None else int(found[1])


def parse_head(data: bytes) -> Head | None:
    """None where it is no head file's content."""
    found = _HEAD.fullmatch(data.decode("ascii", "replace"))
    return None if found is None else Head(int(found[1]), found[2])
