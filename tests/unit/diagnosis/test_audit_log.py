"""Audit files are read while their broker writes and removes them."""

from pathlib import Path

import pytest

from ottla.base.errors import ErrorCode, OttlaError
from ottla.diagnosis import audit_log
from ottla.security.audit.chain import AuditFile, Chain, Head, file_name, head_name, head_text


def written(folder: Path) -> list[Path]:
    """Three files of broker 1; the last says that retention removed the first."""
    chain, files = Chain(), []
    for number in range(3):
        event = {"event": "stop", "broker": 1}
        path = folder / file_name(1, chain.number + 1)
        data = chain.link(event)
        if number == 0:
            gone = {"event": "removed", "broker": 1, "file": path.name, "last": 1}
            first_head = chain.head
        elif number == 2:
            data += chain.link({**gone, "hash": first_head})
        path.write_bytes(data)
        files.append(path)
    (folder / head_name(1)).write_bytes(head_text(Head(chain.number, chain.head)))
    return files


@pytest.fixture
def oldest(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A file that retention removes just after it was listed."""
    oldest, *_ = written(tmp_path)
    listed = audit_log._files_in

    def then_removed(folder: Path) -> list[AuditFile]:
        found = listed(folder)
        oldest.unlink(missing_ok=True)
        return found

    monkeypatch.setattr(audit_log, "_files_in", then_removed)
    return oldest


def test_a_file_that_retention_removes_meanwhile_is_no_damage(oldest: Path) -> None:
    """The log is listed again, and what is left says why it begins where it does."""
    verdict = audit_log.verify_audit(oldest.parent)
    assert verdict.intact
    (chain,) = verdict.chains
    assert (chain.first, chain.last, chain.retention_line) == (2, 4, 4)


def test_lines_of_a_file_that_retention_removes_meanwhile_are_left_out(oldest: Path) -> None:
    """The others are shown."""
    assert [line.number for line in audit_log.audit_lines(oldest.parent)] == [2, 3, 4]


def test_files_that_cannot_be_opened_at_all_are_an_error_with_a_remedy(tmp_path: Path) -> None:
    """It is not begun again for ever."""
    written(tmp_path)
    (tmp_path / file_name(1, 5)).symlink_to(tmp_path / "nowhere")
    with pytest.raises(OttlaError, match="copy the folder") as refused:
        audit_log.verify_audit(tmp_path)
    assert refused.value.code is ErrorCode.LOG_DIR_NOT_FOUND
