"""Creates contexts of the `ssl` module from TLS options and key material.

The module reads a key only from a path. It gets the path of a file in memory (memfd). On systems
without memfd the file is a temporary one that only this user can read, and it is removed at once.
"""

import contextlib
import os
import ssl
from collections.abc import Iterator

from ottla.base.errors import ErrorCode, OttlaError
from ottla.network.tls.material import Material
from ottla.network.tls.options import TlsOptions

_VERSIONS = {"TLSv1.2": ssl.TLSVersion.TLSv1_2, "TLSv1.3": ssl.TLSVersion.TLSv1_3}
# The first line of a certificate revocation list; the `ssl` module reads such lists only from
# files.
_REVOKED = "-----BEGIN X509 CRL-----"
_CLIENT_AUTH = {
    "none": ssl.CERT_NONE,
    "requested": ssl.CERT_OPTIONAL,
    "required": ssl.CERT_REQUIRED,
}


def server_context(options: TlsOptions, material: Material) -> ssl.SSLContext:
    """Return the context of a listener. Raises OttlaError(INVALID_CONFIG)."""
    if not material.key_and_chain:
        raise _bad(
            "a TLS listener needs a key and its certificate: set ssl.keystore.location"
            " (`ottla certs dev` makes them for a laptop)"
        )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    _limit(context, options)
    _load_key(context, material)
    context.verify_mode = _CLIENT_AUTH[options.client_auth]
    if options.client_auth != "none":
        if not material.trusted:
            raise _bad(
                f"ssl.client.auth={options.client_auth} needs ssl.truststore.location: the"
                " certificates of those that sign for clients"
            )
        _trust(context, material)
        # A resumed session would continue after its certificate has expired. TLS 1.2 sessions
        # cannot be disabled here; for them `ListenerTls.identify` checks the expiry again. They
        # keep their tickets: without, OpenSSL keeps 20,480 sessions here, 10 KB each.
        context.num_tickets = 0
    return context


def client_context(options: TlsOptions, material: Material) -> ssl.SSLContext:
    """Return the context for a client or a connecting broker. Raises OttlaError."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = options.checks_host
    _limit(context, options)
    if material.trusted:
        _trust(context, material)
    else:
        context.load_default_certs(ssl.Purpose.SERVER_AUTH)
    if material.key_and_chain:
        _load_key(context, material)
    return context


def _limit(context: ssl.SSLContext, options: TlsOptions) -> None:
    versions = set(options.versions)
    if not options.ciphers.tls_1_2:
        versions.discard("TLSv1.2")
    if not options.ciphers.tls_1_3:
        versions.discard("TLSv1.3")
    if not versions:
        raise _bad("ssl.cipher.suites names no suite of the versions in ssl.enabled.protocols")
    context.minimum_version = min(_VERSIONS[name] for name in versions)
    context.maximum_version = max(_VERSIONS[name] for name in versions)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    if options.ciphers.openssl:
        try:
            context.set_ciphers(options.ciphers.openssl)
        except ssl.SSLError:
            raise _bad(
                f"ssl.cipher.suites: OpenSSL has none of {options.ciphers.openssl}"
            ) from None


def _trust(context: ssl.SSLContext, material: Material) -> None:
    # As in Java, a certificate in the trust store is trusted even if it is not a root.
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    try:
        if _REVOKED not in material.trusted:
            context.load_verify_locations(cadata=material.trusted)
            return
        # If one authority has a revocation list, OpenSSL requires one of every authority.
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_LEAF
        with _as_file(material.trusted.encode()) as path:
            context.load_verify_locations(cafile=path)
    except ssl.SSLError as error:
        raise _bad(
            f"the trust store holds no certificates that can be read ({_why(error)}); it is to hold"
            " PEM blocks -----BEGIN CERTIFICATE-----"
        ) from None


def _load_key(context: ssl.SSLContext, material: Material) -> None:
    with _as_file(material.key_and_chain) as path:
        try:
            context.load_cert_chain(path, password=lambda: material.key_password)
        except ssl.SSLError as error:
            remedy = _remedy(error, has_password=bool(material.key_password))
            raise _bad(f"{material.place} cannot be used: {_why(error)}; {remedy}") from None
        except (OSError, ValueError):
            raise _bad(
                f"{material.place} cannot be used: it must hold a key and its certificate, as PEM"
            ) from None


def _remedy(error: ssl.SSLError, *, has_password: bool) -> str:
    if has_password and not error.reason:
        # OpenSSL gives no reason for a PKCS#8 key that it cannot decrypt.
        return "ssl.key.password is wrong, or the key is damaged"
    return _REMEDIES.get(
        error.reason or "",
        "it is to hold a key and its certificate, then those that signed it",
    )


_REMEDIES = {
    "KEY_VALUES_MISMATCH": "the first certificate is not that of the key; put the key's own first",
    "EE_KEY_TOO_SMALL": "the key is too short to be safe: make one of 2048 bits (RSA) or more",
    "CA_KEY_TOO_SMALL": "a key of the chain is too short to be safe: 2048 bits (RSA) or more",
    "CA_MD_TOO_WEAK": "a certificate is signed with a broken hash: sign it with SHA-256",
    "BAD_DECRYPT": "ssl.key.password is wrong",
    "BAD_PASSWORD_READ": "the key is encrypted: set ssl.key.password",
}


def _why(error: ssl.SSLError) -> str:
    return (error.reason or "unreadable").replace("_", " ").lower()


@contextlib.contextmanager
def _as_file(data: bytes) -> Iterator[str]:
    """Yield a path from which only this user can read `data`; it is removed afterwards."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("ottla", os.MFD_CLOEXEC)
        try:
            os.write(descriptor, data)
            yield f"/proc/self/fd/{descriptor}"
        finally:
            os.close(descriptor)
        return
    # Linux does not need it, and it imports compressors.
    import tempfile  # noqa: PLC0415

    descriptor, path = tempfile.mkstemp()
    try:
        os.write(descriptor, data)
        os.close(descriptor)
        yield path
    finally:
        os.unlink(path)


def _bad(what: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_CONFIG, what)
