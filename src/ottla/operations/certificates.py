"""Creates a certificate authority and certificates; needs the extra `cryptography`."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LOCAL_HOSTS = ("localhost", "127.0.0.1", "::1")
_AUTHORITY_DAYS = 3650
_DAYS = 397
# Certificates are valid from this long ago, because the clocks of two machines may differ.
_BEFORE = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate and its private key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def pem(self) -> bytes:
        """Return key and certificate in one PEM text, for `ssl.keystore.location`."""
        return key_pem(self.key) + self.certificate.public_bytes(Encoding.PEM)


def load_authority(certificate: Path, key: Path) -> Issued:
    """Load an authority from its files.

    Raises OSError; ValueError if they are invalid or do not match.
    """
    private = load_key(key)
    found = x509.load_pem_x509_certificate(certificate.read_bytes())
    if found.public_key() != private.public_key():
        raise ValueError(f"{key.name} is not the key of {certificate.name}")
    return Issued(found, private)


def load_key(path: Path) -> ec.EllipticCurvePrivateKey:
    """Load an authority's key from its file. Raises OSError, ValueError."""
    private = load_pem_private_key(path.read_bytes(), None)
    if not isinstance(private, ec.EllipticCurvePrivateKey):
        raise ValueError(f"{path} holds another kind of key than this makes")
    return private


def new_authority(
    name: str, now: datetime, key: ec.EllipticCurvePrivateKey | None = None
) -> Issued:
    """Create a root authority, with a new key if none is given."""
    key = key or ec.generate_private_key(ec.SECP256R1())
    subject = common_name(name)
    usage = _key_usage(signs_certificates=True)
    made = (
        _builder(subject, subject, key, now, now + timedelta(days=_AUTHORITY_DAYS))
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return Issued(made, key)


def issue(
    authority: Issued, name: str, now: datetime, *, hosts: Iterable[str] = (), days: int = _DAYS
) -> Issued:
    """Issue a certificate for CN=`name`: for a broker if it has `hosts`, else for a client.

    It does not outlive its authority. With negative `days` it has expired already.
    """
    key = ec.generate_private_key(ec.SECP256R1())
    end = min(now + timedelta(days=days), authority.certificate.not_valid_after_utc)
    subject = common_name(name)
    alternatives = [_general_name(host) for host in hosts]
    # Brokers also connect to other brokers as clients.
    purposes = [ExtendedKeyUsageOID.CLIENT_AUTH]
    if alternatives:
        purposes.append(ExtendedKeyUsageOID.SERVER_AUTH)
    signer = authority.key.public_key()
    builder = (
        _builder(subject, authority.certificate.subject, key, now, end)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(purposes), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signer), critical=False)
    )
    if alternatives:
        builder = builder.add_extension(x509.SubjectAlternativeName(alternatives), critical=False)
    return Issued(builder.sign(authority.key, hashes.SHA256()), key)


def common_name(name: str) -> x509.Name:
    """Return the X.509 name CN=`name`."""
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def hosts_of(certificate: x509.Certificate) -> list[str]:
    """Return the host names and addresses in the certificate."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, x509.ExtensionNotFound):
        return []
    return [str(each.value) for each in found if isinstance(each, x509.DNSName | x509.IPAddress)]


def serves(
    certificate: x509.Certificate,
    authority: Issued,
    hosts: Iterable[str],
    now: datetime,
    until: datetime,
) -> bool:
    """Whether clients that trust the authority accept a certificate at `hosts`, until `until`."""
    try:
        certificate.verify_directly_issued_by(authority.certificate)
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (InvalidSignature, ValueError, TypeError, x509.ExtensionNotFound):
        return False
    wanted = {_general_name(host) for host in hosts}
    lasts = certificate.not_valid_before_utc <= now and certificate.not_valid_after_utc > until
    return lasts and wanted <= set(names)


def key_pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a key as unencrypted PEM (PKCS#8, which Java reads)."""
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePrivateKey,
    now: datetime,
    end: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(min(now, end) - _BEFORE)
        .not_valid_after(end)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _general_name(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(host))
    except ValueError:
        return x509.DNSName(host)
