"""Creates a certificate authority and certificates for a laptop; needs the extra `cryptography`."""

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

from ottla.base.private_files import make_private_folder, write_private

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


@dataclass(frozen=True, slots=True)
class DevelopmentFiles:
    """The paths of the created files. `authority_is_new`: the folder had no authority before."""

    folder: Path
    authority_is_new: bool

    @property
    def authority(self) -> Path:
        return self.folder / "ca.pem"

    @property
    def authority_key(self) -> Path:
        return self.folder / "ca.key"

    @property
    def server(self) -> Path:
        return self.folder / "server.pem"

    @property
    def client(self) -> Path:
        return self.folder / "client.pem"

    @property
    def server_properties(self) -> Path:
        return self.folder / "server.properties"

    @property
    def client_properties(self) -> Path:
        return self.folder / "client.properties"


def make_development_files(
    folder: Path, hosts: Iterable[str], user: str, now: datetime
) -> DevelopmentFiles:
    """Make certificates for a broker at `hosts` and for a client, and settings of both.

    They are signed by the authority in the folder, or by a new one if there is none. Raises
    OSError, and ValueError if the authority's files cannot be read.
    """
    folder = folder.absolute()
    make_private_folder(folder)
    found = DevelopmentFiles(folder, authority_is_new=False)
    if found.authority_key.exists():
        authority = load_authority(found.authority, found.authority_key)
    else:
        found = DevelopmentFiles(folder, authority_is_new=True)
        authority = new_authority("Ottla development authority", now)
        write_private(found.authority_key, key_pem(authority.key))
        write_private(found.authority, authority.certificate.public_bytes(Encoding.PEM), 0o644)
    # Keep the host names of the old certificate, because a running broker reloads the new one.
    former = [] if found.authority_is_new else _hosts_in(found.server)
    names = list(dict.fromkeys([*hosts, *former, *LOCAL_HOSTS]))
    write_private(found.server, issue(authority, names[0], now, hosts=names).pem)
    write_private(found.client, issue(authority, user, now).pem)
    write_private(found.server_properties, _server_settings(found).encode())
    write_private(found.client_properties, _client_settings(found).encode())
    return found


def _hosts_in(path: Path) -> list[str]:
    try:
        return hosts_of(x509.load_pem_x509_certificate(path.read_bytes()))
    except (FileNotFoundError, ValueError):
        return []


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


def _server_settings(files: DevelopmentFiles) -> str:
    return (
        "# A broker with TLS. For certificates of clients: ssl.client.auth=required\n"
        "listeners=SSL://:9093\n"
        "security.inter.broker.protocol=SSL\n"
        "ssl.keystore.type=PEM\n"
        f"ssl.keystore.location={files.server}\n"
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={files.authority}\n"
        "ssl.client.auth=requested\n"
    )


def _client_settings(files: DevelopmentFiles) -> str:
    return (
        "security.protocol=SSL\n"
        "ssl.truststore.type=PEM\n"
        f"ssl.truststore.location={files.authority}\n"
        "ssl.keystore.type=PEM\n"
        f"ssl.keystore.location={files.client}\n"
    )
