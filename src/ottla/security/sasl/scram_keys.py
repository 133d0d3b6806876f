"""The stored form of SCRAM passwords, and the proofs made from it (RFC 5802, RFC 7677).

A credential contains neither the password nor anything that suffices to log in.
"""

import base64
import binascii
import hashlib
import hmac
from enum import Enum
from typing import NamedTuple

ITERATIONS_MIN = 4096
ITERATIONS_MAX = 16_384
ITERATIONS_DEFAULT = 8192
SALT_BYTES = 32


class ScramMechanism(Enum):
    """A SCRAM mechanism: Kafka's number of it (KIP-554), and the name of its hash in hashlib."""

    SCRAM_SHA_256 = 1, "sha256"
    SCRAM_SHA_512 = 2, "sha512"

    def __init__(self, number: int, hash_name: str) -> None:
        self.number = number
        self.hash_name = hash_name

    @property
    def sasl_name(self) -> str:
        """The mechanism's name in SASL, such as `SCRAM-SHA-256`."""
        return self.name.replace("_", "-")


def mechanism_numbered(number: int) -> ScramMechanism | None:
    """Return the mechanism with Kafka's number; None if there is none."""
    return next((each for each in ScramMechanism if each.number == number), None)


class ScramCredential(NamedTuple):
    """The stored form of one user's password for one mechanism."""

    salt: bytes
    iterations: int
    stored_key: bytes
    server_key: bytes


def salted_password(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int
) -> bytes:
    """Hash a password with PBKDF2, which takes milliseconds.

    As in Kafka, the password's UTF-8 bytes are hashed.
    """
    return hashlib.pbkdf2_hmac(mechanism.hash_name, password.encode(), salt, iterations)


def credential_of(
    mechanism: ScramMechanism, salted: bytes, salt: bytes, iterations: int
) -> ScramCredential:
    """Return the credential of a salted password."""
    client_key = mac(mechanism, salted, b"Client Key")
    stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
    return ScramCredential(salt, iterations, stored_key, mac(mechanism, salted, b"Server Key"))


def new_credential(
    mechanism: ScramMechanism, password: str, salt: bytes, iterations: int = ITERATIONS_DEFAULT
) -> ScramCredential:
    """Return the credential of a new password; slow, like `salted_password`."""
    salted = salted_password(mechanism, password, salt, iterations)
    return credential_of(mechanism, salted, salt, iterations)


def is_password(mechanism: ScramMechanism, credential: ScramCredential, password: str) -> bool:
    """Whether the password matches the credential; slow, like `salted_password`."""
    made = new_credential(mechanism, password, credential.salt, credential.iterations)
    return hmac.compare_digest(made.stored_key, credential.stored_key)


def client_proof(mechanism: ScramMechanism, salted: bytes, signed: bytes) -> bytes:
    """Return the client's proof that it knows the password, for the messages `signed`."""
    client_key = mac(mechanism, salted, b"Client Key")
    stored_key = hashlib.new(mechanism.hash_name, client_key).digest()
    return _xor(client_key, mac(mechanism, stored_key, signed))


def is_proof(
    mechanism: ScramMechanism, credential: ScramCredential, signed: bytes, proof: bytes
) -> bool:
    """Whether `proof` shows knowledge of the password; takes the same time in all cases."""
    signature = mac(mechanism, credential.stored_key, signed)
    if len(proof) != len(signature):
        return False
    client_key = _xor(proof, signature)
    found = hashlib.new(mechanism.hash_name, client_key).digest()
    return hmac.compare_digest(found, credential.stored_key)


# The salt of delegation tokens.
_TOKEN_SALT_BYTES = 16


def fake_credential(
    mechanism: ScramMechanism, secret: bytes, name: str, *, is_token: bool
) -> ScramCredential:
    """Return a credential for an unknown user or token, which no password matches.

    With it an unknown name gets the same answers as one that Ottla's commands made. The salt is
    derived from the name and the cluster's `secret`, so it stays the same from login to login.
    """
    own = mac(mechanism, secret, name.encode())
    salt = hmac.digest(own, b"salt", "sha512")[: _TOKEN_SALT_BYTES if is_token else SALT_BYTES]
    iterations = ITERATIONS_MIN if is_token else ITERATIONS_DEFAULT
    return credential_of(mechanism, own, salt, iterations)


def mac(mechanism: ScramMechanism, key: bytes, content: bytes) -> bytes:
    """Return the HMAC with the mechanism's hash."""
    return hmac.digest(key, content, mechanism.hash_name)


def _xor(one: bytes, other: bytes) -> bytes:
    return bytes(a ^ b for a, b in zip(one, other, strict=True))


_FIELDS = ("salt", "stored_key", "server_key", "iterations")


def credential_text(credential: ScramCredential) -> str:
    """Encode as `salt=…,stored_key=…,server_key=…,iterations=8192`; the keys are in Base64."""
    salt, stored_key, server_key = (
        base64.b64encode(part).decode()
        for part in (credential.salt, credential.stored_key, credential.server_key)
    )
    return (
        f"salt={salt},stored_key={stored_key},server_key={server_key}"
        f",iterations={credential.iterations}"
    )


def parse_credential(text: str) -> ScramCredential:
    """Parse a stored credential. Raises ValueError, which does not repeat the text."""
    fields = dict(part.partition("=")[::2] for part in text.split(","))
    if tuple(sorted(fields)) != tuple(sorted(_FIELDS)):
        raise ValueError(f"it does not have the fields {', '.join(_FIELDS)}")
    try:
        salt, stored_key, server_key = (
            base64.b64decode(fields[name], validate=True) for name in _FIELDS[:3]
        )
        iterations = int(fields["iterations"])
    except (binascii.Error, ValueError):
        raise ValueError("a field of it is not Base64, or its iterations are no number") from None
    return ScramCredential(salt, iterations, stored_key, server_key)
