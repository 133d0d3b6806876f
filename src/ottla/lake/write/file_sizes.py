"""Target sizes for a load's files and for the row groups in them."""

from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.job.output import ROW_GROUP_BYTES, ROW_GROUP_ROWS
from ottla.lake.model.plan import SPLIT_BYTES


@dataclass(frozen=True, slots=True)
class FileSizes:
    """Target sizes. Raises OttlaError for a size that is not above 0."""

    # Counted in bytes of the log; a data file has about the same size.
    file_bytes: int = SPLIT_BYTES
    row_group_rows: int = ROW_GROUP_ROWS
    # Counted in bytes of Arrow's columns, before compression.
    row_group_bytes: int = ROW_GROUP_BYTES

    def __post_init__(self) -> None:
        if min(self.file_bytes, self.row_group_rows, self.row_group_bytes) <= 0:
            raise OttlaError(ErrorCode.INVALID_REQUEST, "sizes of files and row groups are above 0")
