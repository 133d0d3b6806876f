"""Fake credentials for unknown users, so that answers do not reveal which users exist.

Salts and iterations depend on the program that created a user: Java's tools write other salts than
Ottla's. So each unknown name gets one of the kinds in use, as often as real users have it. The kind
and the salt are derived from the name and a secret: they stay the same from login to login. A name
keeps its kind when users are added; the kinds of other names hardly change.
"""

import hmac
from collections import Counter
from collections.abc import Iterable
from math import log
from typing import Final, NamedTuple

from ottla.security.sasl.scram_keys import (
    ITERATIONS_DEFAULT,
    ITERATIONS_MIN,
    SALT_BYTES,
    ScramCredential,
    ScramMechanism,
    credential_of,
    mac,
)

_LETTERS: Final = "0123456789abcdefghijklmnopqrstuvwxyz"
# Java's format: a random number with this many bits, written with these letters.
_JAVA_BITS: Final = 130
_JAVA_SIZES: Final = range(20, 27)
_JAVA: Final = 0
_TOKEN_SALT_BYTES: Final = 16
# Names whose kind is remembered.
_REMEMBERED_MAX: Final = 10_000
# Each kind costs a hash in every login; rarer ones are ignored.
_KINDS_MAX: Final = 8


class SaltKind(NamedTuple):
    """The common properties of some users' salts."""

    # The length of random salts; _JAVA for Java's.
    salt_bytes: int
    iterations: int


_OF_TOKENS: Final = ((SaltKind(_TOKEN_SALT_BYTES, ITERATIONS_MIN), 1),)
_DEFAULT: Final = ((SaltKind(SALT_BYTES, ITERATIONS_DEFAULT), 1),)


class Disguise:
    """Creates credentials that match no password."""

    __slots__ = ("_kinds", "_secret", "_shown")

    def __init__(self, secret: bytes, kinds: tuple[tuple[SaltKind, int], ...] = _DEFAULT) -> None:
        """Create the disguise. `kinds` maps each kind to its number of users."""
        self._secret = secret
        self._kinds = kinds
        # The kinds shown to names, by a hash of the name.
        self._shown: dict[bytes, SaltKind] = {}

    @staticmethod
    def like(secret: bytes, credentials: Iterable[ScramCredential]) -> "Disguise":
        """Return a disguise with kinds as frequent as among these users."""
        counts = Counter(kind_of(each.salt, each.iterations) for each in credentials)
        return Disguise(secret, tuple(counts.most_common(_KINDS_MAX)) or _DEFAULT)

    def now_like(self, credentials: Iterable[ScramCredential]) -> "Disguise":
        """Return a disguise with the kinds of these users; a name keeps a kind once shown."""
        found = Disguise.like(self._secret, credentials)
        found._shown = self._shown
        return found

    def of_tokens(self) -> "Disguise":
        """Return the disguise for unknown delegation tokens; real ones have the same salts."""
        return Disguise(self._secret, _OF_TOKENS)

    def credential(self, mechanism: ScramMechanism, user: str) -> ScramCredential:
        """Return the fake credential of an unknown user."""
        own = mac(mechanism, self._secret, user.encode())
        kind = self._shown.get(own)
        if kind is None:
            kind = self._kind(own)
            if len(self._shown) >= _REMEMBERED_MAX:
                del self._shown[next(iter(self._shown))]
            self._shown[own] = kind
        random = hmac.digest(own, b"salt", "sha512")
        salt = random[: kind.salt_bytes] if kind.salt_bytes else _java_salt(random)
        return credential_of(mechanism, own, salt, kind.iterations)

    def _kind(self, own: bytes) -> SaltKind:
        """Draw a number for each kind, and return the kind with the lowest.

        Kinds with more users draw lower numbers.
        """
        drawn = []
        for kind, count in self._kinds:
            seed = hmac.digest(own, b"%d %d" % kind, "sha256")
            fraction = (int.from_bytes(seed[:7], "big") + 1) / (1 << 56)
            drawn.append((-log(fraction) / count, kind))
        return min(drawn)[1]


def kind_of(salt: bytes, iterations: int) -> SaltKind:
    """Return the kind of one user's salt."""
    is_java = len(salt) in _JAVA_SIZES and all(byte in _LETTERS.encode() for byte in salt)
    return SaltKind(_JAVA if is_java else min(len(salt), 64), iterations)


def _java_salt(random: bytes) -> bytes:
    number = int.from_bytes(random[:17], "big") >> (17 * 8 - _JAVA_BITS)
    letters = []
    while number:
        number, digit = divmod(number, len(_LETTERS))
        letters.append(_LETTERS[digit])
    return "".join(reversed(letters)).encode()
