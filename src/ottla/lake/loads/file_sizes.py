"""How large the files of a load become, and the row groups in them."""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.output import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from ottla.lake.splitting import SPLIT_BYTES


@dataclass(frozen=True, slots=True)
class FileSizes:
    """Targets. Raises OttlaError for one that is not above 0."""

    file_bytes: int = SPLIT_BYTES  # Of the log, which a file is about as large as.
    row_group_rows: int = ROW_GROUP_ROWS
    row_group_bytes: int = ROW_GROUP_BYTES  # Of Arrow's columns, before they are compressed.

    def __post_init__(self) -> None:
        if min(self.file_bytes, self.row_group_rows, self.row_group_bytes) <= 0:
            raise OttlaError(ErrorCode.INVALID_REQUEST, "sizes of files and row groups are above 0")
