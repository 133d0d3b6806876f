"""Converts errors of an object store to one sentence with cause and remedy."""

import errno
import re
from collections.abc import Iterator
from contextlib import contextmanager

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.store.put_until_known import StoreUnreachable

_CODE = re.compile(r"<Code>([^<]+)</Code>(?:\s*<Message>([^<]+)</Message>)?")
_STATUS = re.compile(r"status code: (\d{3})")
_NO_BUCKET = ("NoSuchBucket", "The specified bucket does not exist", "ContainerNotFound")
_NO_RIGHT = ("SignatureDoesNotMatch", "InvalidAccessKeyId", "AuthenticationFailed", "ExpiredToken")
# The last place where libraries look for credentials: the metadata service of a cloud's machines.
_NO_CREDENTIALS = ("169.254.169.254", "169.254.170", "metadata.google", "No credentials")
_CREDENTIALS = (
    "credentials come from the environment (AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, "
    "GOOGLE_APPLICATION_CREDENTIALS, AZURE_STORAGE_ACCOUNT_KEY …) or the machine's role, on the "
    "driver and on every worker"
)


@contextmanager
def named_errors(url: str, path: str) -> Iterator[None]:
    """Turn errors of obstore into OttlaError (StoreUnreachable …) or FileNotFoundError.

    `url` is the root, `path` the object of the request.
    """
    try:
        yield
    except FileNotFoundError as error:
        if _has(str(error), _NO_BUCKET):
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
    if _has(text, _NO_BUCKET):
        return _no_bucket(url)
    if _has(text, _NO_CREDENTIALS):
        return OttlaError(
            ErrorCode.KAFKA_STORAGE_ERROR, f"no credentials for {url}: {_CREDENTIALS}"
        )
    if _has(text, _NO_RIGHT) or (status and status[1] in ("401", "403")):
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
    """Return the cause in a few words, without the signature of a request."""
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


def _has(text: str, words: tuple[str, ...]) -> bool:
    return any(word in text for word in words)
