"""Reads audit files, and verifies that they are unchanged, without a broker."""

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from ottla.base.errors import ErrorCode, OttlaError
from ottla.security.audit.chain import (
    AuditFile,
    Head,
    Line,
    head_name,
    parse_file_name,
    parse_head,
    parse_head_name,
    parse_line,
)
from ottla.security.audit.verification import ChainCheck, Remark, Verified

_NO_HEAD_FILE = "there is no head file, or it is damaged: careless cuts at the end are not found"
# How often the files are read again if one is deleted meanwhile.
_TRIES = 10


@dataclass(frozen=True, slots=True)
class AuditVerdict:
    """The verified hash chains of all brokers whose files were read; `anchor` is the given hash."""

    chains: tuple[Verified, ...]
    anchor: str | None

    @property
    def anchored(self) -> Verified | None:
        """Return the chain that has a line with the given hash."""
        return next((chain for chain in self.chains if chain.anchor_line), None)

    @property
    def intact(self) -> bool:
        """Whether no fault was found."""
        is_found = self.anchor is None or self.anchored is not None
        return is_found and all(chain.intact for chain in self.chains)


def audit_files(target: Path) -> list[AuditFile]:
    """Return the audit file `target`, or all audit files in that folder, in order.

    Raises OttlaError(LOG_DIR_NOT_FOUND).
    """
    found = [one] if (one := _file_at(target)) else _files_in(target)
    if not found:
        raise OttlaError(
            ErrorCode.LOG_DIR_NOT_FOUND,
            f"{target} has no audit log: name a file ottla-audit-….log, or its folder, which is"
            " the first of log.dirs or audit.log.dir",
        )
    return found


def _file_at(target: Path) -> AuditFile | None:
    return parse_file_name(target.name) if target.is_file() else None


def _files_in(folder: Path) -> list[AuditFile]:
    found = (parse_file_name(path.name) for path in _listed(folder))
    return sorted(file for file in found if file is not None)


def _listed(target: Path) -> list[Path]:
    return list(target.iterdir()) if target.is_dir() else []


def verify_audit(target: Path, anchor: str | None = None) -> AuditVerdict:
    """Verify the hash chains in a file or folder; `anchor` is the noted hash of a line.

    Raises OttlaError(LOG_DIR_NOT_FOUND).
    """
    for _ in range(_TRIES):
        try:
            return _verify(target, anchor)
        except FileNotFoundError:
            # Retention deleted a file meanwhile; the next attempt reads the remaining files.
            continue
    raise OttlaError(
        ErrorCode.LOG_DIR_NOT_FOUND,
        f"files of the audit log in {target} are removed faster than they are read; copy the"
        " folder, or raise audit.log.retention.bytes",
    )


def _verify(target: Path, anchor: str | None) -> AuditVerdict:
    folder = target.parent if target.is_file() else target
    is_whole = target.is_dir()
    # Read before the files, because a broker may be writing lines at the same time.
    noted = {broker: _noted(folder, broker) for broker in _with_heads(folder)}
    # A broker that has a head file but no other file has lost all its audit files.
    files = _files_in(folder) if is_whole and noted else audit_files(target)
    last = {file.broker: file for file in _files_in(folder)}
    brokers = {file.broker for file in files} | (set(noted) if is_whole else set())
    chains: list[Verified] = []
    for broker in sorted(brokers):
        own = [file for file in files if file.broker == broker]
        has_end = not own or own[-1] == last.get(broker)
        head = noted.get(broker) if has_end else None
        check = ChainCheck(broker, is_whole=is_whole, noted=head, anchor=anchor)
        for file in own:
            with (folder / file.name).open("rb") as lines:
                check.read(file, lines)
        found = check.finish()
        if is_whole and head is None:
            found = found._replace(notes=(*found.notes, Remark("", 0, _NO_HEAD_FILE)))
        chains.append(found)
    return AuditVerdict(tuple(chains), anchor)


def _with_heads(folder: Path) -> list[int]:
    found = (parse_head_name(path.name) for path in _listed(folder))
    return sorted(broker for broker in found if broker is not None)


def _noted(folder: Path, broker: int) -> Head | None:
    try:
        return parse_head((folder / head_name(broker)).read_bytes())
    except FileNotFoundError:
        return None


def audit_lines(target: Path) -> Iterator[Line]:
    """Yield the lines of a file, or of all files in a folder; skip invalid lines."""
    folder = target.parent if target.is_file() else target
    for file in audit_files(target):
        # Retention may delete a file meanwhile.
        with contextlib.suppress(FileNotFoundError), (folder / file.name).open("rb") as lines:
            for data in lines:
                line = parse_line(data.removesuffix(b"\n"))
                if line is not None:
                    yield line
