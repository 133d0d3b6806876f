"""`ssl.cipher.suites`: names as Java and the standards have them, in OpenSSL's words. Pure."""

from collections.abc import Iterable
from typing import NamedTuple

# The suites of TLS 1.3; the `ssl` module switches all of them on or none.
TLS_1_3 = frozenset(
    {"TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256", "TLS_AES_128_GCM_SHA256"}
)
_WITH = "_WITH_"


class Ciphers(NamedTuple):
    """Which suites are on. The empty one: all that OpenSSL holds to be safe."""

    # For TLS 1.2, separated by colons; "" where only those of TLS 1.3 are named.
    openssl: str = ""
    tls_1_2: bool = True
    tls_1_3: bool = True


ALL = Ciphers()


def read_ciphers(names: Iterable[str]) -> Ciphers:
    """The suites that a list names: `TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256`, or OpenSSL's names."""
    named = list(names)
    if not named:
        return ALL
    older = [_openssl(name) for name in named if name not in TLS_1_3]
    return Ciphers(":".join(older), bool(older), len(older) < len(named))


def _openssl(name: str) -> str:
    if not name.startswith("TLS_") or _WITH not in name:
        return name
    exchange, _, cipher = name.removeprefix("TLS_").partition(_WITH)
    cipher = cipher.removesuffix("_SHA256") if "CHACHA20" in cipher else cipher
    cipher = cipher.replace("AES_128", "AES128").replace("AES_256", "AES256").replace("_CBC", "")
    parts = [] if exchange == "RSA" else [exchange]
    return "-".join([*parts, cipher]).replace("_", "-")
