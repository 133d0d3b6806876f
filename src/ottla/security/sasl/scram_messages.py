"""Reads and writes the messages of a SCRAM exchange (RFC 5802, section 7).

Reading raises ValueError, which describes the problem without the message.
"""

import base64
import binascii
import re
from typing import NamedTuple

# The size of a message is limited, because it is read before the client is known.
MESSAGE_BYTES_MAX = 4096
# Without channel binding: no client of Kafka's binds a channel.
_GS2 = re.compile(r"([ny]|p=[A-Za-z0-9.\-]+),(?:a=([^,]*))?,", re.ASCII)
_NONCE = re.compile(r"[\x21-\x2b\x2d-\x7e]+")
_NAME_ESCAPE = re.compile(r"=(2C|3D)?")


class ClientFirst(NamedTuple):
    """The client's first message: the user, and the client's part of the nonce."""

    header: str  # Must be repeated in `c=`.
    bare: str  # The part that is signed.
    user: str
    nonce: str
    extensions: dict[str, str]


class ServerFirst(NamedTuple):
    """The server's answer to the client's first message."""

    nonce: str
    salt: bytes
    iterations: int


class ClientFinal(NamedTuple):
    """The client's second message: the proof."""

    binding: bytes
    nonce: str
    proof: bytes
    without_proof: str  # The part that is signed.


def read_client_first(message: bytes) -> ClientFirst:
    """Read `n,,n=alice,r=NONCE[,NAME=VALUE…]`."""
    text = _text(message)
    header = _GS2.match(text)
    if header is None:
        raise ValueError("it does not begin with a GS2 header such as `n,,`")
    if header[1].startswith("p="):
        raise ValueError("it asks for channel binding, which is not supported")
    bare = text[header.end() :]
    fields = _fields(bare)
    if fields[0][0] == "m":
        raise ValueError("it has a mandatory extension, and none is known")
    if [name for name, _ in fields[:2]] != ["n", "r"]:
        raise ValueError("user name and nonce are not where they should be")
    user, nonce = _name(fields[0][1]), fields[1][1]
    if not user or not _NONCE.fullmatch(nonce):
        raise ValueError("its user name is empty, or its nonce has other characters")
    if header[2] is not None and _name(header[2]) != user:
        raise ValueError("its authorization id is not its user name")
    return ClientFirst(header[0], bare, user, nonce, dict(fields[2:]))


def token_in(message: bytes) -> str | None:
    """Return the id of the delegation token in a first message.

    None for a user or malformed bytes.
    """
    try:
        first = read_client_first(message)
    except ValueError:
        return None
    return first.user if is_of_token(first) else None


def is_of_token(first: ClientFirst) -> bool:
    """Whether the message's user is the id of a delegation token (KIP-48)."""
    return first.extensions.get("tokenauth", "").lower() == "true"


def write_client_first(user: str, nonce: str, extensions: dict[str, str]) -> bytes:
    """Return the first message of a client."""
    name = user.replace("=", "=3D").replace(",", "=2C")
    more = "".join(f",{key}={value}" for key, value in extensions.items())
    return f"n,,n={name},r={nonce}{more}".encode()


def read_server_first(message: bytes) -> ServerFirst:
    """Read `r=NONCE,s=SALT,i=ITERATIONS`."""
    fields = _fields(_text(message))
    if [name for name, _ in fields[:3]] != ["r", "s", "i"]:
        raise ValueError("nonce, salt and iterations are not where they should be")
    (_, nonce), (_, salt), (_, iterations) = fields[:3]
    if not iterations.isdecimal() or len(iterations) > 9:
        raise ValueError("its iterations are no number")
    return ServerFirst(nonce, _decoded(salt), int(iterations))


def write_server_first(nonce: str, salt: bytes, iterations: int) -> bytes:
    """Return the answer to a client's first message."""
    return f"r={nonce},s={_encoded(salt)},i={iterations}".encode()


def read_client_final(message: bytes) -> ClientFinal:
    """Read `c=BINDING,r=NONCE[,NAME=VALUE…],p=PROOF`."""
    text = _text(message)
    fields = _fields(text)
    if [name for name, _ in fields[:2]] != ["c", "r"] or fields[-1][0] != "p" or len(fields) < 3:
        raise ValueError("binding, nonce and proof are not where they should be")
    without_proof = text[: text.rindex(",p=")]
    return ClientFinal(_decoded(fields[0][1]), fields[1][1], _decoded(fields[-1][1]), without_proof)


def client_final_without_proof(header: str, nonce: str) -> str:
    """Return the part of a client's second message that is signed."""
    return f"c={_encoded(header.encode())},r={nonce}"


def write_client_final(without_proof: str, proof: bytes) -> bytes:
    """Return the second message of a client."""
    return f"{without_proof},p={_encoded(proof)}".encode()


def read_server_final(message: bytes) -> bytes:
    """Read the signature of `v=SIGNATURE`; an error from the server raises ValueError."""
    [(name, value), *_] = _fields(_text(message))
    if name == "e":
        raise ValueError(f"the server says {value[:100]!r}")
    if name != "v":
        raise ValueError("the server's signature is not where it should be")
    return _decoded(value)


def write_server_final(signature: bytes) -> bytes:
    """Return the last message of a server after a successful login."""
    return f"v={_encoded(signature)}".encode()


def _text(message: bytes) -> str:
    if len(message) > MESSAGE_BYTES_MAX:
        raise ValueError(f"it has {len(message)} bytes, and {MESSAGE_BYTES_MAX} are allowed")
    try:
        text = message.decode()
    except UnicodeDecodeError:
        raise ValueError("it is not UTF-8") from None
    if "\0" in text:
        raise ValueError("it has a zero in it")
    return text


def _fields(text: str) -> list[tuple[str, str]]:
    found = []
    for part in text.split(","):
        name, sign, value = part.partition("=")
        if not sign or not name.isascii() or not name.isalpha():
            raise ValueError("it is not made of NAME=VALUE")
        found.append((name, value))
    return found


def _name(escaped: str) -> str:
    """Unescape a user name: `=2C` is a comma, `=3D` an equals sign."""

    def plain(found: re.Match[str]) -> str:
        if found[1] is None:
            raise ValueError("its user name has a `=` that escapes nothing")
        return "," if found[1] == "2C" else "="

    return _NAME_ESCAPE.sub(plain, escaped)


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _decoded(text: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a part of it is not Base64") from None
