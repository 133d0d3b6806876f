"""Requests of WebHDFS: to the name node, and on to the data node that it names."""

import errno
import json
from collections.abc import Mapping
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from ottla.base.errors import ErrorCode, OttlaError
from ottla.lake.stores.put_until_known import StoreUnreachable

_TIMEOUT_S = 60
_TRIES = 3
_REMEDIES = {
    "AccessControlException": "give that user the right to write there, or name another one "
    "(option user, HADOOP_USER_NAME)",
    "SafeModeException": "wait until the name node has left its safe mode (hdfs dfsadmin "
    "-safemode get)",
    "StandbyException": "name the active name node in the URL",
    "NSQuotaExceededException": "raise the folder's quota",
    "DSQuotaExceededException": "raise the folder's quota",
}
_LOST = (OSError, HTTPException)


class NameTaken(OttlaError):
    """There is a file of that name."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What a request was answered with."""

    content: bytes

    def json(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.content)
        return found


class Upload:
    """The content of a file on its way to a data node, in chunks."""

    def __init__(self, place: str, location: str) -> None:
        self._place = place
        found = urlsplit(location)
        self._connection = HTTPConnection(found.netloc, timeout=_TIMEOUT_S)
        try:
            self._connection.putrequest("PUT", f"{found.path}?{found.query}")
            self._connection.putheader("Content-Type", "application/octet-stream")
            self._connection.putheader("Transfer-Encoding", "chunked")
            self._connection.endheaders()
        except _LOST as error:
            raise _unreachable(place, error) from error

    def send(self, content: bytes) -> None:
        if not content:
            return  # An empty chunk would be the last one.
        try:
            self._connection.send(b"%x\r\n%b\r\n" % (len(content), content))
        except _LOST as error:
            # Its answer says more than the broken line, where it has sent one.
            try:
                self._connection.sock.settimeout(5)
                _require_done(self._connection.getresponse(), self._place)
            except _LOST:
                pass
            raise _unreachable(self._place, error) from error

    def end(self) -> None:
        """Wait until the file is closed. Raises NameTaken, StoreUnreachable, OttlaError."""
        try:
            self._connection.send(b"0\r\n\r\n")
            _require_done(self._connection.getresponse(), self._place)
        except FileNotFoundError:
            raise
        except _LOST as error:
            raise _unreachable(self._place, error) from error
        finally:
            self._connection.close()


@dataclass(frozen=True, slots=True)
class NameNode:
    """Where requests go first."""

    host: str
    port: int
    user: str

    def call(self, method: str, path: str, query: Mapping[str, str]) -> Answer:
        """Ask, follow to a data node where need be, and return the answer.

        Asks again where an answer to a reading request is lost. Raises FileNotFoundError,
        NameTaken, StoreUnreachable (it may be done), and OttlaError for what is refused.
        """
        tries = _TRIES if method == "GET" else 1
        for left in reversed(range(tries)):
            try:
                return self._ask(method, path, query)
            except FileNotFoundError:
                raise
            except _LOST as error:
                if not left:
                    raise _unreachable(self._place(path), error) from error
        raise AssertionError

    def begin(self, path: str, query: Mapping[str, str]) -> Upload:
        """Ask where the content of a new file goes. Raises as `call` does."""
        try:
            response, connection = self._request("PUT", path, query)
            try:
                if response.status != 307:
                    _require_done(response, self._place(path))
                    raise _unreachable(self._place(path), HTTPException("no data node was named"))
                location = response.headers["Location"]
                response.read()
            finally:
                connection.close()
        except FileNotFoundError:
            raise
        except _LOST as error:
            raise _unreachable(self._place(path), error) from error
        return Upload(self._place(path), location)

    def _ask(self, method: str, path: str, query: Mapping[str, str]) -> Answer:
        response, connection = self._request(method, path, query)
        try:
            if response.status == 307:
                found = urlsplit(response.headers["Location"])
                connection.close()
                connection = HTTPConnection(found.netloc, timeout=_TIMEOUT_S)
                connection.request(method, f"{found.path}?{found.query}")
                response = connection.getresponse()
            return _require_done(response, self._place(path))
        finally:
            connection.close()

    def _request(
        self, method: str, path: str, query: Mapping[str, str]
    ) -> tuple[HTTPResponse, HTTPConnection]:
        connection = HTTPConnection(self.host, self.port, timeout=_TIMEOUT_S)
        words = urlencode({**query, "user.name": self.user}, quote_via=quote)
        connection.request(method, f"/webhdfs/v1{quote(path)}?{words}")
        return connection.getresponse(), connection

    def _place(self, path: str) -> str:
        return f"webhdfs://{self.host}:{self.port}{path}"


def _require_done(response: HTTPResponse, place: str) -> Answer:
    content = response.read()
    if response.status < 300:
        return Answer(content)
    try:
        found = json.loads(content)["RemoteException"]
        kind, message = str(found["exception"]), str(found["message"]).partition("\n")[0]
    except (ValueError, KeyError, TypeError):
        raise StoreUnreachable(
            ErrorCode.KAFKA_STORAGE_ERROR,
            f"{place} cannot be read or written: the answer is HTTP status {response.status}, not "
            "one of WebHDFS; see that the URL has the name node's HTTP port (mostly 9870)",
        ) from None
    if kind == "FileNotFoundException":
        raise FileNotFoundError(errno.ENOENT, "no such file", place)
    if kind == "FileAlreadyExistsException":
        raise NameTaken(ErrorCode.KAFKA_STORAGE_ERROR, f"{place} is there already")
    remedy = _REMEDIES.get(kind, "look at the name node's log")
    # A server error may come after the work is done.
    error = StoreUnreachable if response.status >= 500 or kind == "IOException" else OttlaError
    raise error(ErrorCode.KAFKA_STORAGE_ERROR, f"{place} is refused: {message} ({kind}); {remedy}")


def _unreachable(place: str, error: Exception) -> StoreUnreachable:
    return StoreUnreachable(
        ErrorCode.KAFKA_STORAGE_ERROR,
        f"{place} cannot be read or written ({type(error).__name__}: {error}); see that the name "
        "node and the data nodes run and can be reached from the driver and from every worker",
    )
