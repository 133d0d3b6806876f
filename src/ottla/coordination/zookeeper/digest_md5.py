"""DIGEST-MD5 (RFC 2831) in the form of ZooKeeper's servers: `auth`, no integrity layer. Pure.

The library that kazoo would use for it has had no release since 2019. The RFC is historic, and MD5
is weak. The advantage over ZooKeeper's scheme `digest` is that the password itself is not sent.
"""

import hashlib
import hmac
import re

# The service name of all ZooKeeper servers.
_URI = "zookeeper/zk-sasl-md5"
_COUNT = "00000001"
_DIRECTIVE = re.compile(r'([\w-]+)=(?:"((?:[^"\\]|\\.)*)"|([^,\s]*))')


class DigestRefused(ValueError):
    """The server sent something that makes a login impossible; the message names it."""


class DigestMd5:
    """One login. `nonce` is the client's nonce, unpredictable and new for each login."""

    def __init__(self, user: str, password: str, nonce: str, uri: str = _URI) -> None:
        self._user = user
        self._password = password
        self._nonce = nonce
        self._uri = uri
        self._expected = ""

    def answer(self, challenge: bytes) -> bytes:
        """The response to the server's challenge. Raises DigestRefused."""
        asked = _directives(challenge)
        server_nonce, realm = asked.get("nonce", ""), asked.get("realm", "")
        if not server_nonce or asked.get("algorithm", "md5-sess") != "md5-sess":
            raise DigestRefused("its challenge is not one of DIGEST-MD5: has it a JAAS file?")
        if "auth" not in asked.get("qop", "auth").replace(",", " ").split():
            raise DigestRefused(f"it demands qop={asked['qop']}, and only auth is there")
        whose = b":".join(_bytes(part) for part in (self._user, realm, self._password))
        first = hashlib.md5(whose, usedforsecurity=False).digest()
        session = _hex(first + f":{server_nonce}:{self._nonce}".encode())
        between = f"{server_nonce}:{_COUNT}:{self._nonce}:auth"

        def proof(what: str) -> str:
            return _hex(f"{session}:{between}:{_hex(what.encode())}".encode())

        mine = proof(f"AUTHENTICATE:{self._uri}")
        self._expected = proof(f":{self._uri}")
        return (
            f'charset=utf-8,username="{_quoted(self._user)}",realm="{_quoted(realm)}",'
            f'nonce="{_quoted(server_nonce)}",nc={_COUNT},cnonce="{self._nonce}",'
            f'digest-uri="{self._uri}",maxbuf=65536,response={mine},qop=auth'
        ).encode()

    def is_proven(self, last: bytes) -> bool:
        """Whether the server's last message proves that it knows the password, too."""
        found = _directives(last).get("rspauth", "")
        return bool(self._expected) and hmac.compare_digest(found, self._expected)


def _directives(text: bytes) -> dict[str, str]:
    found = _DIRECTIVE.finditer(text.decode("utf-8", "replace"))
    return {one[1]: one[3] if one[2] is None else re.sub(r"\\(.)", r"\1", one[2]) for one in found}


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _bytes(text: str) -> bytes:
    """Encode as in the RFC: ISO 8859-1 if that is enough, else UTF-8."""
    try:
        return text.encode("iso-8859-1")
    except UnicodeEncodeError:
        return text.encode("utf-8")


def _hex(data: bytes) -> str:
    return hashlib.md5(data, usedforsecurity=False).hexdigest()
