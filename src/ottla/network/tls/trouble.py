"""Explains why a TLS handshake failed, with a remedy. Pure."""

import ssl
from typing import NamedTuple


class HandshakeTrouble(NamedTuple):
    """The kind of a failure, the same each time, and a sentence about it with a remedy."""

    kind: str
    sentence: str


_PLAINTEXT = HandshakeTrouble(
    "plaintext",
    "it sent no TLS to a TLS listener: set security.protocol=SSL (or SASL_SSL) in the client, or"
    " point it to a plaintext listener",
)
_OWN_REFUSED = (
    "it does not accept this broker's certificate ({alert}): give the client the authority's"
    " certificate (ssl.truststore.location), connect to a name that stands in the certificate, and"
    " check that it has not expired (ssl.keystore.location of the broker)"
)
_VERSION = (
    "it offers no version of TLS that is on here (ssl.enabled.protocols): use TLSv1.2 or TLSv1.3 in"
    " the client"
)
_OWN_REFUSED_ALERTS = (
    "UNKNOWN_CA",
    "BAD_CERTIFICATE",
    "CERTIFICATE_UNKNOWN",
    "CERTIFICATE_EXPIRED",
    "CERTIFICATE_REVOKED",
    "UNSUPPORTED_CERTIFICATE",
)
_BY_REASON = {
    "HTTP_REQUEST": HandshakeTrouble(
        "HTTP", "it sent an HTTP request: this port speaks Kafka's protocol over TLS"
    ),
    "HTTPS_PROXY_REQUEST": HandshakeTrouble(
        "HTTP", "it sent an HTTP request: this port speaks Kafka's protocol over TLS"
    ),
    "WRONG_VERSION_NUMBER": _PLAINTEXT,
    "UNKNOWN_PROTOCOL": _PLAINTEXT,
    "PACKET_LENGTH_TOO_LONG": _PLAINTEXT,
    "ENCRYPTED_LENGTH_TOO_LONG": _PLAINTEXT,
    "RECORD_LAYER_FAILURE": _PLAINTEXT,
    "UNSUPPORTED_PROTOCOL": HandshakeTrouble("version", _VERSION),
    "VERSION_TOO_LOW": HandshakeTrouble("version", _VERSION),
    "WRONG_SSL_VERSION": HandshakeTrouble("version", _VERSION),
    "NO_SHARED_CIPHER": HandshakeTrouble(
        "cipher", "it shares no cipher suite with this listener: see ssl.cipher.suites of both"
    ),
    "PEER_DID_NOT_RETURN_A_CERTIFICATE": HandshakeTrouble(
        "no certificate",
        "it has no certificate, and ssl.client.auth=required: set ssl.keystore.location in the"
        " client",
    ),
}


def of_client(error: OSError) -> HandshakeTrouble | None:
    """Explain why a client's handshake failed; None if it only disconnected, as port checks do."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message
        return HandshakeTrouble(
            f"certificate: {why}",
            f"its certificate is not accepted ({why}): {_certificate_remedy(why)}",
        )
    if isinstance(error, ssl.SSLEOFError):
        return None
    if isinstance(error, ssl.SSLError):
        return _of_reason(error.reason or "unknown")
    if isinstance(error, TimeoutError):
        return HandshakeTrouble("handshake timeout", "its TLS handshake was not done in time")
    return None


def _of_reason(reason: str) -> HandshakeTrouble:
    known = _BY_REASON.get(reason)
    if known is not None:
        return known
    words = reason.replace("_", " ").lower()
    if "ALERT" in reason:
        if any(reason.endswith(alert) for alert in _OWN_REFUSED_ALERTS):
            return HandshakeTrouble(reason, _OWN_REFUSED.format(alert=words))
        return HandshakeTrouble(reason, f"it ended the TLS handshake ({words}): see its own log")
    return HandshakeTrouble(
        reason, f"its TLS handshake failed ({words}): compare the ssl settings of both sides"
    )


def _certificate_remedy(why: str) -> str:
    if "expired" in why or "not yet valid" in why:
        return "renew the client's certificate, and compare the clocks of both machines"
    if "revoked" in why:
        return "its authority has revoked it: give the client another"
    if "CRL" in why:
        return "put a valid list of its authority into ssl.truststore.location of the broker"
    if "key too small" in why or "key too weak" in why:
        return "use a key of 2048 bits (RSA) or more"
    if "md too weak" in why or "digest" in why:
        return "have it signed with SHA-256"
    return "have it signed by an authority in this broker's ssl.truststore.location"


def is_of_handshake(error: OSError) -> bool:
    """Return whether the TCP connection succeeded, but the TLS handshake failed."""
    if isinstance(error, ssl.SSLError):
        return True
    return isinstance(error, ConnectionError) and not isinstance(error, ConnectionRefusedError)


def of_server(error: Exception, host: str) -> str:
    """Explain in a sentence, with a remedy, why a handshake with a broker failed. For clients."""
    if isinstance(error, ssl.SSLCertVerificationError):
        why = error.verify_message.rstrip(".")
        if "ostname mismatch" in why or "IP address mismatch" in why:
            return (
                f"the broker's certificate is not for {host!r}: connect to a name that stands in"
                " it, or have one made with that name"
            )
        if "expired" in why or "not yet valid" in why:
            return (
                f"the broker's certificate is not accepted ({why}): renew it"
                " (ssl.keystore.location of the broker), and compare the clocks of both machines"
            )
        if "purpose" in why:
            return (
                f"the broker's certificate is not accepted ({why}): have it made for servers"
                " (extended key usage serverAuth)"
            )
        return (
            f"the broker's certificate is not accepted ({why}): set ssl.truststore.location to the"
            " certificate of the authority that signed it"
        )
    if isinstance(error, ConnectionError | ssl.SSLEOFError):
        return (
            "the connection ended in the TLS handshake; if the port does not speak TLS, set"
            " security.protocol=PLAINTEXT or SASL_PLAINTEXT in the client's settings, or use the"
            " port of a TLS listener; else the broker's log says why"
        )
    if isinstance(error, ssl.SSLError):
        reason = error.reason or "no reason"
        if reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "PACKET_LENGTH_TOO_LONG"):
            return (
                "the port does not speak TLS; set security.protocol=PLAINTEXT or SASL_PLAINTEXT in"
                " the client's settings, or use the port of a TLS listener"
            )
        words = reason.replace("_", " ").lower()
        return f"the TLS handshake failed ({words}): the broker's log says more"
    return str(error)
