"""Certificates and settings for a broker and a client with TLS, signed by a new authority."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from ottla.base.private_files import make_private_folder, write_private
from ottla.operations.certificates import (
    LOCAL_HOSTS,
    hosts_of,
    issue,
    key_pem,
    load_authority,
    new_authority,
)


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
