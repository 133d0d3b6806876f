"""Makes what secured brokers keep in their data folder, by `cryptography`, an extra.

A certificate is made anew before it expires, or where it lacks a name.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.private_files import make_private_folder, narrow, whose, write_private
from ottla.operations.certificates import (
    LOCAL_HOSTS,
    Issued,
    issue,
    key_pem,
    load_authority,
    new_authority,
    serves,
)
from ottla.operations.securing.folder import SecureFolder

# Renewed when less time is left: a laptop may sleep for weeks.
_MARGIN: Final = timedelta(days=60)
# A certificate's own name; clients compare the names of hosts.
_NAME: Final = "ottla"
_AUTHORITY: Final = "Ottla development authority"


def prepare(files: SecureFolder, hosts: Iterable[str], now: datetime) -> list[str]:
    """Make what is missing; sentences about what a person must know.

    Raises OttlaError where a file cannot be used or written.
    """
    try:
        make_private_folder(files.folder)
        notes = [*_narrow(files), *renew(files, hosts, now)]
        files.write_clients()
    except OSError as error:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"--secure keeps certificates and passwords in {files.folder}, and cannot:"
            f" {error.filename or files.folder}: {error.strerror}"
            f"{whose(str(error.filename)) if isinstance(error, PermissionError) else ''}",
        ) from None
    return notes


def stores_in_memory(hosts: Iterable[str], now: datetime) -> dict[str, str]:
    """Key, certificate and authority as PEM in settings, for a broker that keeps no files."""
    authority = new_authority(_AUTHORITY, now)
    made = issue(authority, _NAME, now, hosts=dict.fromkeys([*hosts, *LOCAL_HOSTS]))
    return {
        "ssl.keystore.key": key_pem(made.key).decode(),
        "ssl.keystore.certificate.chain": _pem(made),
        "ssl.truststore.certificates": _pem(authority),
    }


def renew(files: SecureFolder, hosts: Iterable[str], now: datetime) -> list[str]:
    """Make certificates that are missing or about to expire; sentences, as `prepare`.

    Certificates without the authority's key are their owner's and stay. Raises OttlaError, OSError.
    """
    if not files.authority_key.exists() and files.authority.exists():
        if files.certificate.exists():
            return []
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{files.folder} has a ca.pem and neither its ca.key nor a server.pem: put one of"
            " them there, or move ca.pem away for a new authority",
        )
    authority, notes = _authority(files, now)
    wanted = list(dict.fromkeys([*hosts, *LOCAL_HOSTS]))
    if not _serves(files, authority, wanted, now):
        made = issue(authority, _NAME, now, hosts=wanted)
        write_private(files.certificate, made.pem, durably=True)
    return notes


def _narrow(files: SecureFolder) -> list[str]:
    private = (files.authority_key, files.certificate, files.password, files.broker_password)
    return [
        f"{path} was open to other users of this machine and is not any more: if they may have"
        " read it, remove it for a new one"
        for path in private
        if narrow(str(path)) is not None
    ]


def _authority(files: SecureFolder, now: datetime) -> tuple[Issued, list[str]]:
    notes: list[str] = []
    if files.authority_key.exists():
        try:
            found = load_authority(files.authority, files.authority_key)
        except (ValueError, FileNotFoundError) as error:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"{files.authority} and ca.key beside it cannot be used ({error}): move both"
                " away for a new authority, which clients must then be given",
            ) from None
        if found.certificate.not_valid_after_utc > now + _MARGIN:
            return found, []
        notes = [
            f"the authority of {files.folder} was about to expire, and a new one signs now: give"
            f" clients the new {files.authority}"
        ]
    made = new_authority(_AUTHORITY, now)
    write_private(files.authority_key, key_pem(made.key), durably=True)
    write_private(files.authority, _pem(made).encode(), 0o644, durably=True)
    return made, notes


def _pem(issued: Issued) -> str:
    return issued.certificate.public_bytes(Encoding.PEM).decode()


def _serves(files: SecureFolder, authority: Issued, hosts: Iterable[str], now: datetime) -> bool:
    try:
        found = x509.load_pem_x509_certificate(files.certificate.read_bytes())
    except (FileNotFoundError, ValueError):
        return False
    return serves(found, authority, hosts, now + _MARGIN)
