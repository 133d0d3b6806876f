"""What the libraries of Delta and Iceberg raise over a log that no program wrote, as one error."""

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.folder.storage_errors import refusal_of_disk

# Of this process, not of the log.
_PASSING = (OttlaError, KeyboardInterrupt, SystemExit, GeneratorExit)


@contextmanager
def as_log_error(kind: str, place: str) -> Iterator[None]:
    """Raise whatever a library raises as an OttlaError, or the refusal of a disk as OSError.

    Over damaged bytes that can be anything: a KeyError, a TypeError, or a panic of Rust, which is
    no Exception.
    """
    try:
        yield
    except _PASSING:
        raise
    except BaseException as error:
        refusal = refusal_of_disk(error) if isinstance(error, Exception) else None
        if refusal is not None:
            raise refusal from error
        why = f"{type(error).__name__}: {error}"
        raise OttlaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"the {kind} table in {place} can't be read or written: {why}",
        ) from error
