"""Reads keys and certificates into memory: PEM, and PKCS#12 with the library `cryptography`."""

from dataclasses import dataclass, field

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.private_files import read_small
from ottla.network.tls.options import StoreOptions, TlsOptions

_JKS = (b"\xfe\xed\xfe\xed", b"\xce\xce\xce\xce")
_PEM = b"-----BEGIN"
_KEY = b"PRIVATE KEY-----"
_ENCRYPTED = b"ENCRYPTED"
# The end of the first line of a certificate, also in the older and the trusted form of OpenSSL.
_CERTIFICATE = b"CERTIFICATE-----"
# The first byte of an ASN.1 sequence, and so of a PKCS#12 file.
_DER = b"\x30"
# The limit is many times the size of the certificates of all public authorities.
_BYTES_MAX = 1 << 20


@dataclass(frozen=True, slots=True)
class Material:
    """The keys and certificates for a context. A field is empty if its store is not set."""

    # PEM: the key, perhaps encrypted, and then the chain, beginning with the own certificate.
    key_and_chain: bytes = field(default=b"", repr=False)
    key_password: str = field(default="", repr=False)
    # PEM: the trusted certificates.
    trusted: str = field(default="", repr=False)
    # The setting and file of the key, for messages.
    place: str = "the key store"


def load_material(options: TlsOptions) -> Material:
    """Read both stores. Raises OttlaError(INVALID_CONFIG), whose message has no secret."""
    key_and_chain, password = _key_and_chain(options)
    location = options.keystore.location
    place = f"ssl.keystore.location {location}" if location else "ssl.keystore.key"
    return Material(key_and_chain, password, _trusted(options.truststore), place)


def _key_and_chain(options: TlsOptions) -> tuple[bytes, str]:
    store = options.keystore
    if not store.is_set:
        return b"", ""
    if not store.location:
        if not (store.key and store.certificates):
            raise _bad("ssl.keystore.key and ssl.keystore.certificate.chain belong together")
        return f"{store.key}\n{store.certificates}\n".encode(), options.key_password
    data = _read(store)
    if _PEM in data:
        _require_no_password(store)
        _require_key_and_certificate(store, data, options.key_password)
        return data, options.key_password
    return _open_pkcs12(store, data, needs_key=True), ""


def _trusted(store: StoreOptions) -> str:
    if not store.is_set:
        return ""
    if not store.location:
        return store.certificates
    data = _read(store)
    if _PEM in data:
        _require_no_password(store)
        if _CERTIFICATE not in data:
            raise _bad(
                f"{store.what}.location {store.location} holds no certificate: it is to hold those"
                " that are trusted, as PEM"
            )
    else:
        data = _open_pkcs12(store, data, needs_key=False)
    return data.decode("ascii", "replace")


def _read(store: StoreOptions) -> bytes:
    name = f"{store.what}.location"
    if store.certificates or store.key:
        raise _bad(f"{name} and certificates in the settings exclude each other: remove one")
    if store.type not in ("JKS", "PKCS12", "PEM"):
        raise _bad(f"{store.what}.type is PEM or PKCS12, not {store.type[:40]}")
    try:
        data = read_small(store.location, _BYTES_MAX)
    except OSError as error:
        raise _bad(f"cannot read {name} {store.location}: {error.strerror}") from error
    if data.startswith(_JKS):
        raise _bad(
            f"{name} {store.location} is a JKS file, which only Java reads; convert it: keytool"
            f" -importkeystore -srckeystore {store.location} -destkeystore store.p12"
            f" -deststoretype PKCS12, and set {store.what}.type=PKCS12"
        )
    if store.type == "PEM" and _PEM not in data:
        raise _bad(f"{name} {store.location} holds no PEM; or set {store.what}.type=PKCS12")
    if store.type == "PKCS12" and _PEM in data:
        raise _bad(f"{name} {store.location} is PEM: set {store.what}.type=PEM")
    if _PEM not in data and not data.startswith(_DER):
        raise _bad(f"{name} {store.location} is neither PEM nor PKCS#12")
    return data


def _require_no_password(store: StoreOptions) -> None:
    if store.password:
        raise _bad(
            f"{store.what}.password does not go with PEM, as in Kafka: remove it; an encrypted key"
            " has ssl.key.password"
        )


def _require_key_and_certificate(store: StoreOptions, data: bytes, key_password: str) -> None:
    place = f"{store.what}.location {store.location}"
    if _KEY not in data:
        raise _bad(f"{place} has a certificate and no private key: put its key in front of it")
    if _CERTIFICATE not in data:
        raise _bad(
            f"{place} has a key and no certificate: put the key's certificate behind it, then those"
            " that signed it"
        )
    if _ENCRYPTED in data and not key_password:
        raise _bad(f"the private key in {place} is encrypted: set ssl.key.password")


def _open_pkcs12(store: StoreOptions, data: bytes, *, needs_key: bool) -> bytes:
    """Return the content of a PKCS#12 file as PEM: key and chain, or only certificates."""
    try:
        # Imported only here, because it is optional: PEM files need no library.
        from cryptography.hazmat.primitives.serialization import (  # noqa: PLC0415
            Encoding,
            NoEncryption,
            PrivateFormat,
            pkcs12,
        )
    except ImportError:
        raise _bad(
            f"{store.what}.location {store.location} is PKCS#12: install ottla[security] on this"
            " machine, or use PEM"
        ) from None
    try:
        held = pkcs12.load_pkcs12(data, store.password.encode() or None)
    except ValueError:
        # The library's own message is left out, since it may contain the password or key.
        raise _bad(
            f"{store.what}.location {store.location} cannot be opened: {store.what}.password is"
            " wrong, or the file is damaged"
        ) from None
    own = [] if held.cert is None else [held.cert]
    chain = [each.certificate.public_bytes(Encoding.PEM) for each in [*own, *held.additional_certs]]
    if not chain:
        raise _bad(f"{store.what}.location {store.location} holds no certificate")
    if not needs_key:
        return b"".join(chain)
    if held.key is None or held.cert is None:
        raise _bad(f"{store.what}.location {store.location} holds no private key")
    key = held.key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return key + b"".join(chain)


def _bad(what: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_CONFIG, what)
