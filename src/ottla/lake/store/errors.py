"""Converts errors of disks, stores and libraries to one sentence with cause and remedy."""

import errno
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.store.store import StoreUnreachable

_OTHER_FOLDER = "or choose another folder"
# Errors for which a retry only helps after space was freed or the disk was remounted.
_FULL = (errno.ENOSPC, errno.EDQUOT)
_REFUSALS = (*_FULL, errno.EROFS)
# Libraries in Rust, C (SQLite) and Python quote the system's errors in these forms.
_NUMBER = re.compile(r"\(os error (\d+)\)|\[Errno (\d+)\]")
_SQLITE_FULL = "database or disk is full"
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")


def plain(text: str) -> str:
    """Return the text without terminal colours, which libraries put into their errors."""
    return _COLOURS.sub("", text)


def refusal_of_disk(error: BaseException) -> OSError | None:
    """Return the error of a full or read-only disk that caused `error`; None for other errors.

    A library that reports such an error has committed nothing, and a retry would fail again.
    """
    number = error.errno if isinstance(error, OSError) else None
    if number is None:
        text = str(error)
        found = _NUMBER.search(text)
        number = int(found[1] or found[2]) if found else None
        if _SQLITE_FULL in text:
            number = errno.ENOSPC
    if number not in _REFUSALS:
        return None
    if isinstance(error, OSError) and error.errno is not None:
        return error
    return OSError(number, os.strerror(number))


@contextmanager
def as_storage_error(folder: str) -> Iterator[None]:
    """Convert an OSError about `folder`, or a file in it, to an OttlaError.

    Errors of connections are not converted, as they do not come from the file system.
    """
    try:
        yield
    except (ConnectionError, TimeoutError):
        raise
    except OSError as error:
        sentence = _sentence(refusal_of_disk(error) or error, folder)
        raise OttlaError(ErrorCode.KAFKA_STORAGE_ERROR, sentence) from error


def _sentence(error: OSError, folder: str) -> str:
    place = error.filename or folder
    match error.errno:
        case number if number in _FULL:
            return f"no space is left on the disk of {folder}; make room there, {_OTHER_FOLDER}"
        case errno.EROFS:
            return (
                f"{place} cannot be written: its file system is mounted read-only; mount it for "
                f"writing, {_OTHER_FOLDER}"
            )
        case errno.EACCES | errno.EPERM:
            return (
                f"{place} cannot be written or read by this user; give the user that right, "
                f"{_OTHER_FOLDER}"
            )
        case errno.ENOTDIR | errno.EEXIST:
            return f"{folder} cannot be a folder: a file is at {place}; move it, {_OTHER_FOLDER}"
        case errno.ENOENT:
            return (
                f"{place} is not there (any more); the target must be one folder that the driver "
                "and all workers share, and that nothing else removes files from"
            )
        case _:
            cause = " ".join(plain(error.strerror or str(error)).split())
            return f"{place} cannot be written or read ({cause}); repair its disk, {_OTHER_FOLDER}"


_CODE = re.compile(r"<Code>([^<]+)</Code>(?:\s*<Message>([^<]+)</Message>)?")
_STATUS = re.compile(r"status code: (\d{3})")
_NO_BUCKET = ("NoSuchBucket", "The specified bucket does not exist", "ContainerNotFound")
_NO_RIGHT = ("SignatureDoesNotMatch", "InvalidAccessKeyId", "AuthenticationFailed", "ExpiredToken")
# Libraries look for credentials last in the metadata service of a cloud's machines.
_NO_CREDENTIALS = ("169.254.169.254", "169.254.170", "metadata.google", "No credentials")
_CREDENTIALS = (
    "credentials come from the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY …) or the machine's role, on the "
    "driver and on every worker"
)


@contextmanager
def object_errors(url: str, path: str) -> Iterator[None]:
    """Convert errors of obstore to OttlaError (such as StoreUnreachable) or FileNotFoundError.

    `url` is the root of the store, `path` the object of the request.
    """
    try:
        yield
    except FileNotFoundError as error:
        if _has_any(str(error), _NO_BUCKET):
            raise _no_bucket(url) from error
        raise FileNotFoundError(errno.ENOENT, "no such object", f"{url}/{path}") from error
    except Exception as error:  # Obstore's exceptions have no class in common below Exception.
        if isinstance(error, OttlaError) or not _is_of_store(error):
            raise
        raise _named(error, url, path) from error


def _is_of_store(error: Exception) -> bool:
    return isinstance(error, OSError) or type(error).__module__.startswith("obstore")


def _named(error: Exception, url: str, path: str) -> Exception:
    text = str(error)
    status = _STATUS.search(text)
    if _has_any(text, _NO_BUCKET):
        return _no_bucket(url)
    if _has_any(text, _NO_CREDENTIALS):
        return OttlaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"no credentials for {url}: {_CREDENTIALS}"
        )
    if _has_any(text, _NO_RIGHT) or (status and status[1] in ("401", "403")):
        return OttlaError(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{url} refuses access ({short_cause(error)}): {_CREDENTIALS}; they need the rights to "
            "list, read, write and remove objects there",
        )
    if status and status[1] == "501":
        return NotImplementedError(f"the store does not know this request: {short_cause(error)}")
    return StoreUnreachable(
        ErrorCode.KAFKA_STORAGE_ERROR,
        f"{url}/{path} cannot be read or written ({short_cause(error)}); see that the store runs "
        "and can be reached from the driver and from every worker (option aws_endpoint)",
    )


def short_cause(error: Exception | None) -> str:
    """Return a short text of the cause, without the signature of a request."""
    text = str(error).partition("\n\nDebug source")[0]
    coded = _CODE.search(text)
    if coded:
        return f"{coded[1]}: {coded[2]}" if coded[2] else coded[1]
    return re.sub(r"\s+", " ", text)[:300]


def _no_bucket(url: str) -> OttlaError:
    bucket = url.partition("://")[2].partition("/")[0]
    return OttlaError(
        ErrorCode.RESOURCE_NOT_FOUND,
        f"{url} can't hold a table: there is no bucket {bucket}; make it, or correct the target "
        "(and the endpoint and region, options aws_endpoint and aws_region)",
    )


def _has_any(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)


# Messages of delta-rs, pyarrow and pyiceberg for a store that does not answer.
_NO_ANSWER = ("error sending request", "NETWORK_CONNECTION", "curlCode", "Connection refused")
_WHY_MAX = 300
# Errors of this process, which do not come from the log.
_PASSING = (OttlaError, KeyboardInterrupt, SystemExit, GeneratorExit)


@contextmanager
def as_log_error(kind: str, place: str) -> Iterator[None]:
    """Convert any error of a format's library to OttlaError, or to OSError for a full disk.

    For damaged bytes a library may raise anything: a KeyError, a TypeError, or a panic of Rust,
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
