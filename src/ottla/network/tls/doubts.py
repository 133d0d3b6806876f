"""Finds reasons why clients may reject a broker's certificate although TLS starts. Pure."""

import binascii
from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from ipaddress import ip_address

from ottla.network.tls.material import Material
from ottla.security.certificate import CertificateNames, read_certificate, read_names

_SOON = timedelta(days=30)
_BEGIN, _END = b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"


def certificates(pem: bytes) -> Iterator[bytes]:
    """Convert the certificates in PEM to DER. Raises ValueError if one is not valid base64."""
    for block in pem.split(_BEGIN)[1:]:
        yield binascii.a2b_base64(block.partition(_END)[0])


def certificate_doubts(
    material: Material, hosts: Sequence[str], public: Sequence[bytes], now: datetime
) -> list[str]:
    """Return warnings about a listener's certificate, each with its remedy.

    `hosts` are the host names that clients connect to, as far as the settings name them. `public`
    has the certificate authorities, in DER, that this machine trusts anyway.
    """
    try:
        chain = list(certificates(material.key_and_chain))
        names = [read_names(each) for each in chain]
        trusted = [read_names(each) for each in certificates(material.trusted.encode())]
        end = read_certificate(chain[0]).not_after
    except (ValueError, IndexError):
        # Creating the context reports the error.
        return []
    known = [*trusted, *_readable(public)]
    return [*_of_end(names[0], end, now), *_of_hosts(names[0], hosts), *_of_chain(names, known)]


def _readable(ders: Sequence[bytes]) -> Iterator[CertificateNames]:
    for der in ders:
        try:
            yield read_names(der)
        except ValueError:
            continue


def _of_end(own: CertificateNames, end: datetime, now: datetime) -> Iterator[str]:
    if now < end <= now + _SOON:
        yield (
            f"the certificate of {own.subject} expires {end:%Y-%m-%d %H:%M} UTC, in"
            f" {(end - now).days} days: replace the files of ssl.keystore.location; the broker"
            " takes new ones over while it runs"
        )


def _of_hosts(own: CertificateNames, hosts: Sequence[str]) -> Iterator[str]:
    if not hosts or any(_is_for(name, host) for name in own.hosts for host in hosts):
        return
    held = f"is for {', '.join(own.hosts[:10])}" if own.hosts else "names no host"
    yield (
        f"the certificate of {own.subject} {held}, and clients connect to {', '.join(hosts)}: those"
        " that compare names refuse it; have one made with that name among its subject alternative"
        " names, or set advertised.listeners to a name that it has"
    )


def _is_for(name: str, host: str) -> bool:
    try:
        return ip_address(name) == ip_address(host)
    except ValueError:
        name, host = name.lower(), host.lower()
    if name.startswith("*."):
        first, dot, rest = host.partition(".")
        return bool(first and dot) and rest == name[2:]
    return name == host


def _of_chain(
    chain: Sequence[CertificateNames], known: Sequence[CertificateNames]
) -> Iterator[str]:
    """Follow the issuers from the own certificate; warn if an intermediate one is not sent."""
    sent = {each.subject: each for each in chain}
    found, seen = chain[0], set[str]()
    while found.subject != found.issuer and found.subject not in seen and found.issuer in sent:
        seen.add(found.subject)
        found = sent[found.issuer]
    if found.subject == found.issuer:
        return
    held = {each.subject: each for each in known}
    signer = held.get(found.issuer)
    if signer is not None and (signer.issuer == signer.subject or signer.issuer not in held):
        return
    where = (
        "only in the trust store of this broker" if signer else "neither there nor in a trust store"
    )
    yield (
        f"the chain of certificates ends with that of {found.subject}; the certificate of"
        f" {found.issuer}, which signed it, is {where}: clients that have only the root refuse it;"
        " put the certificates between behind the own one in ssl.keystore.location"
        + ("" if signer else " (or, if it is the root, set ssl.truststore.location to it)")
    )
