"""OAUTHBEARER (RFC 7628): the messages that carry a token. `security.jwt` judges the token."""

import json
import re
from collections.abc import Callable, Mapping
from typing import Final, NamedTuple

from ottla.security.sasl.failures import AuthenticationFailed, MalformedExchange

MECHANISM: Final = "OAUTHBEARER"
TOKEN_BYTES_MAX: Final = 16 << 10
# A client's answer to the server's error message; then the exchange fails.
CLIENT_GIVES_UP: Final = b"\x01"
_MESSAGE_BYTES_MAX: Final = TOKEN_BYTES_MAX + 4096
_HEADER: Final = re.compile(r"n,(?:a=((?:[^=,]|=2C|=3D)+))?,")
_TOKEN: Final = re.compile(r"bearer +([A-Za-z0-9\-._~+/]+=*)", re.IGNORECASE)
_PAIR: Final = re.compile(r"([A-Za-z]+)=([\x21-\x7e \t\r\n]*)")
_NOT_RFC_7628: Final = "it is not made as RFC 7628 says"


class BearerLogin(NamedTuple):
    """A client's message; `repr` leaves the token out."""

    token: str
    # The name to act under, which must be the token's; empty if the client names none.
    acts_as: str
    # Extensions of KIP-342, which Ottla reads and ignores.
    extensions: Mapping[str, str]

    def __repr__(self) -> str:
        return f"BearerLogin({self.acts_as!r})"


def read_bearer(message: bytes) -> BearerLogin:
    """Parse `n,[a=AUTHZID],^Aauth=Bearer TOKEN^A[NAME=VALUE^A…]^A`. Raises MalformedExchange."""
    if len(message) > _MESSAGE_BYTES_MAX:
        raise MalformedExchange(MECHANISM, f"it has {len(message)} bytes")
    try:
        header, *pairs, end, last = message.decode().split("\x01")
    except ValueError:
        raise MalformedExchange(MECHANISM, _NOT_RFC_7628) from None
    found = _HEADER.fullmatch(header)
    if found is None or end or last:
        raise MalformedExchange(MECHANISM, _NOT_RFC_7628)
    fields: dict[str, str] = {}
    for pair in pairs:
        parts = _PAIR.fullmatch(pair)
        if parts is None or parts[1] in fields:
            raise MalformedExchange(MECHANISM, "it is not made of NAME=VALUE, each name once")
        fields[parts[1]] = parts[2]
    token = _TOKEN.fullmatch(fields.pop("auth", ""))
    if token is None:
        raise MalformedExchange(MECHANISM, "it has no bearer token")
    if len(token[1]) > TOKEN_BYTES_MAX:
        raise MalformedExchange(
            MECHANISM,
            f"its token has {len(token[1])} bytes, and {TOKEN_BYTES_MAX} are allowed: have the "
            "issuer put fewer claims into it",
        )
    acts_as = (found[1] or "").replace("=2C", ",").replace("=3D", "=")
    return BearerLogin(token[1], acts_as, fields)


def write_bearer(token: str, extensions: Mapping[str, str] = {}) -> bytes:
    """Return the message of a client."""
    more = "".join(f"{name}={value}\x01" for name, value in extensions.items())
    return f"n,,\x01auth=Bearer {token}\x01{more}\x01".encode()


def refusal_text(status: str) -> str:
    """Return the server's error message as in Kafka, such as `{"status":"invalid_token"}`."""
    return json.dumps({"status": status}, separators=(",", ":"))


class RefusedToken(AuthenticationFailed):
    """A refused token. The message is the JSON that the client receives, as in Kafka.

    `cause` is for the broker's log; neither contains any of the token's signature.
    """

    kind = "token"

    def __init__(self, cause: str, kind: str) -> None:
        super().__init__(MECHANISM, cause, kind)
        self.message = refusal_text("invalid_token")


class OtherName(AuthenticationFailed):
    """The client asks to act under another name than its token's."""

    kind = "acts as"

    def __init__(self, acts_as: str, name: str) -> None:
        super().__init__(
            MECHANISM,
            f"it asks to act as {acts_as[:100]!r} with a token of {name!r}: remove the "
            "authorization id from the client",
        )
        # Kafka's message. The client may see the name, because its own token contains it.
        self.message = (
            f"Authentication failed: Client requested an authorization id ({acts_as[:100]}) that "
            f"is different from the token's principal name ({name})"
        )


class OAuthBearerToken(NamedTuple):
    """A token, and when it expires in seconds since 1970.

    With `expires_s` None its claim `exp` decides; a token that is not a JWT is requested anew at
    each login.
    """

    text: str
    expires_s: float | None = None

    def __repr__(self) -> str:
        return f"OAuthBearerToken(expires_s={self.expires_s})"


# Returns a new token. May block; is called in a thread.
Supplier = Callable[[], OAuthBearerToken | str]
