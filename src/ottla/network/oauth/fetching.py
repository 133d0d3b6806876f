"""Reads an issuer's document, from a file or over HTTPS. Blocks; for a thread."""

import http.client
import ssl
import time
from collections.abc import Callable, Mapping
from typing import Final
from urllib.parse import urlencode

from ottla.network.oauth.address import IssuerAddress

_BYTES_MAX: Final = 1 << 20
_CHUNK_BYTES: Final = 64 << 10


class FetchFailed(Exception):
    """There is no document. The message has no secret in it."""

    def __init__(self, why: str, *, is_final: bool = False) -> None:
        super().__init__(why)
        # Whether trying again is of no use.
        self.is_final = is_final


class IssuerReader:
    """Reads one address. `tls` gives the context of a new connection."""

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
        """The document. Raises FetchFailed."""
        if self.endpoint.host:
            return self._ask("GET", None, headers or {})
        try:
            with open(self.endpoint.path, "rb") as file:
                content = file.read(_BYTES_MAX + 1)
        except OSError as error:
            raise FetchFailed(error.strerror or "it cannot be read") from None
        if len(content) > _BYTES_MAX:
            raise FetchFailed(f"it has more than {_BYTES_MAX} bytes")
        return content

    def post(self, form: Mapping[str, str], headers: Mapping[str, str]) -> bytes:
        """The answer to a form. Raises FetchFailed."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        return self._ask("POST", urlencode(form), {**kind, **headers})

    def _ask(self, method: str, body: str | None, headers: Mapping[str, str]) -> bytes:
        """Follows no redirection and asks no proxy: either would lead to another address."""
        endpoint = self.endpoint
        deadline_s = time.monotonic() + self._connect_s + self._read_s
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
                response = connection.getresponse()
                if response.status != http.client.OK:
                    raise FetchFailed(
                        f"it answers {response.status}", is_final=400 <= response.status < 500
                    )
                return _content(response, deadline_s)
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


def _content(response: http.client.HTTPResponse, deadline_s: float) -> bytes:
    content = bytearray()
    while chunk := response.read1(_CHUNK_BYTES):
        content += chunk
        if len(content) > _BYTES_MAX:
            raise FetchFailed(f"it answers more than {_BYTES_MAX} bytes")
        if time.monotonic() > deadline_s:
            raise TimeoutError
    return bytes(content)
