"""The lines in audit files, and whether they are those that the broker wrote, without a broker."""

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from pathlib import Path

from ottla.base.errors import ErrorCode, OttlaError
from ottla.security.audit.line import Line, parse_line
from ottla.security.audit.names import AuditFile, Head, head_name, parse_file_name, parse_head
from ottla.security.audit.verification import ChainCheck, Verified


@dataclass(frozen=True, slots=True)
class AuditVerdict:
    """The chains of all brokers whose files were read. `anchor` is the hash that was given."""

    chains: tuple[Verified, ...]
    anchor: str | None

    @property
    def anchored(self) -> Verified | None:
        """The chain that has a line with that hash."""
        return next((chain for chain in self.chains if chain.anchor_line), None)

    @property
    def intact(self) -> bool:
        """Whether nothing was found."""
        is_found = self.anchor is None or self.anchored is not None
        return is_found and all(chain.intact for chain in self.chains)


def audit_files(target: Path) -> list[AuditFile]:
    """The audit file that `target` is, or all in that folder, in order.

    Raises OttlaError(LOG_DIR_NOT_FOUND).
    """
    names = [target.name] if target.is_file() else [path.name for path in _listed(target)]
    found = sorted(file for file in map(parse_file_name, names) if file is not None)
    if not found:
        raise OttlaError(
            ErrorCode.LOG_DIR_NOT_FOUND,
            f"{target} has no audit log: name a file ottla-audit-….log, or its folder, which is"
            " the first of log.dirs or audit.log.dir",
        )
    return found


def _listed(target: Path) -> list[Path]:
    return list(target.iterdir()) if target.is_dir() else []


def verify_audit(target: Path, anchor: str | None = None) -> AuditVerdict:
    """Check the chains in a file or folder; `anchor` is the hash of a line that was noted."""
    folder = target.parent if target.is_file() else target
    chains: list[Verified] = []
    # Before the files, so that a broker that writes meanwhile is not ahead of them.
    noted = {file.broker: _noted(folder, file.broker) for file in audit_files(folder)}
    for broker, group in groupby(audit_files(target), attrgetter("broker")):
        files = list(group)
        last = max(file for file in audit_files(folder) if file.broker == broker)
        check = ChainCheck(
            broker,
            is_whole=target.is_dir(),
            noted=noted[broker] if files[-1] == last else None,
            anchor=anchor,
        )
        for file in files:
            with (folder / file.name).open("rb") as lines:
                check.read(file, lines)
        chains.append(check.finish())
    return AuditVerdict(tuple(chains), anchor)


def _noted(folder: Path, broker: int) -> Head | None:
    try:
        return parse_head((folder / head_name(broker)).read_bytes())
    except FileNotFoundError:
        return None


def audit_lines(target: Path) -> Iterator[Line]:
    """The lines of a file, or of all in a folder; what is no line is left out."""
    folder = target.parent if target.is_file() else target
    for file in audit_files(target):
        with (folder / file.name).open("rb") as lines:
            for data in lines:
                line = parse_line(data.removesuffix(b"\n"))
                if line is not None:
                    yield line
