"""Converts errors of the libraries for Delta and Iceberg on a damaged log to one error."""

from collections.abc import Iterator
from contextlib import contextmanager

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.store.errors import plain, refusal_of_disk
from ottla.lake.store.put_until_known import StoreUnreachable

# Messages of delta-rs, pyarrow and pyiceberg for a store that does not answer.
_NO_ANSWER = ("error sending request", "NETWORK_CONNECTION", "curlCode", "Connection refused")
_WHY_MAX = 300
# Errors of this process, not of the log.
_PASSING = (OttlaError, KeyboardInterrupt, SystemExit, GeneratorExit)


@contextmanager
def as_log_error(kind: str, place: str) -> Iterator[None]:
    """Raise any error of a library as an OttlaError, or as OSError if the disk refused.

    On damaged bytes a library may raise anything: a KeyError, a TypeError, or a panic of Rust,
    which is not an Exception.
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
        if any(words in why for words in _NO_ANSWER):
            why = " ".join(plain(why).split())
            raise StoreUnreachable(
                ErrorCode.KAFKA_STORAGE_ERROR,
                f"the store of the {kind} table in {place} does not answer ({why[:_WHY_MAX]}); see "
                "that it runs and can be reached from the driver and from every worker",
            ) from error
        raise OttlaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"the {kind} table in {place} can't be read or written: {why}. Where a file of its log "
            "is damaged or missing, restore it from a copy, or load into a new folder",
        ) from error
