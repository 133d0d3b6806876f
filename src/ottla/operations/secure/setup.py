"""Creates the files of secured brokers in their data folder; needs the extra `cryptography`.

A certificate is renewed before it expires, and if it lacks a host name.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.private_files import make_private_folder, narrow, whose, write_private
from ottla.operations.certificates import (
    LOCAL_HOSTS,
    Issued,
    common_name,
    hosts_of,
    issue,
    key_pem,
    load_authority,
    load_key,
    new_authority,
    serves,
)
from ottla.operations.secure.settings import ADMINISTRATOR, SecureFolder

# Certificates with less time left are renewed: a laptop may sleep for weeks.
_MARGIN: Final = timedelta(days=60)
# A certificate's own name; clients compare host names.
_NAME: Final = "ottla"
_AUTHORITY: Final = "Ottla development authority"


def prepare(files: SecureFolder, hosts: Iterable[str], now: datetime) -> list[str]:
    """Create missing files; return messages for the user.

    Raises OttlaError if a file cannot be used or written.
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
    """Return key, certificate and authority as PEM settings, for a broker that keeps no files."""
    authority = new_authority(_AUTHORITY, now)
    made = issue(authority, _NAME, now, hosts=dict.fromkeys([*hosts, *LOCAL_HOSTS]))
    return {
        "ssl.keystore.key": key_pem(made.key).decode(),
        "ssl.keystore.certificate.chain": _pem(made),
        "ssl.truststore.certificates": _pem(authority),
    }


def renew(files: SecureFolder, hosts: Iterable[str], now: datetime) -> list[str]:
    """Issue certificates that are missing or expire soon; return messages for the user.

    If the authority's key is missing, the certificates are the user's own and are not changed.
    Raises OttlaError, OSError.
    """
    if not files.authority_key.exists() and files.authority.exists():
        if files.certificate.exists():
            return []
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{files.folder} has a ca.pem and neither its ca.key nor a server.pem: put one of"
            " them there, or move ca.pem away for a new authority",
        )
    found = _found(files.certificate)
    if found is not None:
        _require_own(files, found.issuer)
    authority, notes = _authority(files, now)
    wanted = list(dict.fromkeys([*hosts, *LOCAL_HOSTS]))
    if found is None or not serves(found, authority, wanted, now, now + _MARGIN):
        # Keep the old host names: clients may use them, and running brokers reload the certificate.
        former = [] if found is None else hosts_of(found)
        made = issue(authority, _NAME, now, hosts=dict.fromkeys([*wanted, *former]))
        write_private(files.certificate, made.pem, durably=True)
    return notes


def _require_own(files: SecureFolder, issuer: x509.Name) -> None:
    """Raise an error instead of replacing a certificate and key that another authority signed."""
    authority = _found(files.authority)
    own = {common_name(_AUTHORITY), *([] if authority is None else [authority.subject])}
    if issuer not in own:
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{files.certificate} was signed by {issuer.rfc4514_string()}, not by the authority of"
            " this folder: for certificates of your own put their authority there as ca.pem and"
            " remove ca.key, or move server.pem away for a new one",
        )


def _narrow(files: SecureFolder) -> list[str]:
    again = "remove it for a new one"
    password = (
        f"give {ADMINISTRATOR} another password (`ottla user password {ADMINISTRATOR}`) and write"
        f" it to {files.password}"
    )
    remedies = {
        files.authority_key: "remove ca.key, ca.pem and server.pem for new ones, and give clients"
        " the new ca.pem",
        files.certificate: again,
        files.broker_password: again,
        files.password: password,
        files.for_java: password,
        files.for_librdkafka: password,
    }
    return [
        f"{path} was open to other users of this machine and is not any more: if they may have"
        f" read it, {remedy}"
        for path, remedy in remedies.items()
        if narrow(str(path)) is not None
    ]


def _authority(files: SecureFolder, now: datetime) -> tuple[Issued, list[str]]:
    notes: list[str] = []
    if files.authority_key.exists():
        try:
            if not files.authority.exists():
                # The first start was killed between both files, or the certificate was deleted.
                _sign_again(files, now)
            found = load_authority(files.authority, files.authority_key)
        except ValueError as error:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"{files.authority} and ca.key beside it cannot be used ({error}): move both"
                " away for a new authority, which clients must then be given",
            ) from None
        is_ours = found.certificate.subject == common_name(_AUTHORITY)
        if is_ours and found.certificate.not_valid_before_utc > now:
            note = (
                f"{files.authority} was made while the clock was ahead, and is made anew with the"
                " same key: give it to clients that refuse the former one as not valid yet"
            )
            return _sign_again(files, now), [note]
        if found.certificate.not_valid_after_utc > now + _MARGIN:
            return found, []
        notes = [
            f"the authority of {files.folder} was about to expire, and a new one signs now: give"
            f" clients the new {files.authority}"
        ]
    made = new_authority(_AUTHORITY, now)
    write_private(files.authority_key, key_pem(made.key), durably=True)
    _write_authority(files, made)
    return made, notes


def _sign_again(files: SecureFolder, now: datetime) -> Issued:
    """Sign a new authority certificate with the old key, so that clients need not be changed."""
    made = new_authority(_AUTHORITY, now, load_key(files.authority_key))
    _write_authority(files, made)
    return made


def _write_authority(files: SecureFolder, authority: Issued) -> None:
    write_private(files.authority, _pem(authority).encode(), 0o644, durably=True)


def _pem(issued: Issued) -> str:
    return issued.certificate.public_bytes(Encoding.PEM).decode()


def _found(path: Path) -> x509.Certificate | None:
    try:
        return x509.load_pem_x509_certificate(path.read_bytes())
    except (FileNotFoundError, ValueError):
        return None
