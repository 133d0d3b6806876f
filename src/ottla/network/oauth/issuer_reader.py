"""Reads an issuer's document, from a file or over HTTPS. Blocks; run it in a thread."""

import http.client
import io
import socket
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Any, Final
from urllib.parse import urlencode

from ottla.base.private_files import read_small
from ottla.network.oauth.address import IssuerAddress

# Even a megabyte of JSON may contain so many objects that parsing it would block the interpreter.
_BYTES_MAX: Final = 256 << 10
# The size limit of an answer, headers included.
_RECEIVED_MAX: Final = 2 * _BYTES_MAX
_CHUNK_BYTES: Final = 64 << 10


class FetchFailed(Exception):
    """The document could not be read. The message contains no secret."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        # Whether a retry is useless.
        self.is_final = is_final


class IssuerReader:
    """Reads one address. `tls` returns the TLS context for a new connection."""

    def __init__(
        self,
        endpoint: IssuerAddress,
        tls: Callable[[], ssl.SSLContext],
        connect_s: float = 10.0,
        read_s: float = 10.0,
    ) -> None:
        self.endpoint = endpoint
        self._tls = tls
        self._connect_s = connect_s
        self._read_s = read_s

    def get(self, headers: Mapping[str, str] | None = None) -> bytes:
        """Return the document. Raises FetchFailed."""
        if self.endpoint.host:
            return self._ask("GET", None, headers or {})
        try:
            return read_small(self.endpoint.path, _BYTES_MAX)
        except OSError as error:
            raise FetchFailed(error.strerror or "it cannot be read") from None

    def post(self, form: Mapping[str, str], headers: Mapping[str, str]) -> bytes:
        """Post a form and return the answer. Raises FetchFailed."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._ask("POST", urlencode(form), {**kind, **headers})

    def _ask(self, method: str, body: str | None, headers: Mapping[str, str]) -> bytes:
        """Send a request to the allowed address only, that is, without redirections and proxies."""
        endpoint = self.endpoint
        try:
            connection = http.client.HTTPSConnection(
                endpoint.host, endpoint.port, timeout=self._connect_s, context=self._tls()
            )
            try:
                connection.connect()
                connection.sock.settimeout(self._read_s)
                connection.request(
                    method, endpoint.path, body, {"Accept": "application/json", **headers}
                )
                deadline_s = time.monotonic() + self._read_s
                with _InTime(connection.sock, method, deadline_s) as response:
                    return _content(response)
            finally:
                connection.close()
        except ssl.SSLCertVerificationError as error:
            raise FetchFailed(
                f"its certificate is not trusted ({error.verify_message}); set "
                "ssl.truststore.location in the options of its login module (sasl.jaas.config)"
            ) from None
        except TimeoutError:
            raise FetchFailed("it does not answer in time") from None
        except OSError as error:
            raise FetchFailed(error.strerror or type(error).__name__) from None
        except (http.client.HTTPException, ValueError) as error:
            raise FetchFailed(
                f"it does not speak HTTP as it should ({type(error).__name__})"
            ) from None


def _content(response: http.client.HTTPResponse) -> bytes:
    response.begin()
    if response.status != http.client.OK:
        is_final = 400 <= response.status < 500
        raise FetchFailed(f"it answers {response.status}", is_final=is_final)
    content = bytearray()
    while chunk := response.read1(_CHUNK_BYTES):
        content += chunk
        if len(content) > _BYTES_MAX:
            raise FetchFailed(f"it answers more than {_BYTES_MAX} bytes")
    return bytes(content)


class _InTime(http.client.HTTPResponse):
    """An answer that must be complete by a deadline, however slowly it arrives.

    A socket timeout alone is not enough: it begins anew with each received byte of a header, and a
    server may send any number of `100 Continue` responses before the answer.
    """

    def __init__(self, sock: socket.socket, method: str, deadline_s: float) -> None:
        super().__init__(sock, method=method)
        self.fp.close()
        self.fp = io.BufferedReader(_Received(sock, deadline_s))


class _Received(io.RawIOBase):
    def __init__(self, sock: socket.socket, deadline_s: float) -> None:
        self._sock = sock
        self._file = sock.makefile("rb", buffering=0)
        self._deadline_s = deadline_s
        self._left = _RECEIVED_MAX

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int | None:
        left_s = self._deadline_s - time.monotonic()
        if left_s <= 0:
            raise TimeoutError
        if self._left <= 0:
            raise FetchFailed(f"it answers more than {_BYTES_MAX} bytes")
        self._sock.settimeout(left_s)
        count = self._file.readinto(buffer)
        self._left -= count or 0
        return count

    def close(self) -> None:
        self._file.close()
        super().close()
