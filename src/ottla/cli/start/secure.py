"""`ottla start --secure`: sets up TLS, logins, an administrator and ACLs automatically."""

import asyncio
import shlex
import socket
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from ottla.base.settings import BrokerSettings
from ottla.base.settings.listeners import is_wildcard, listen_addresses
from ottla.broker.process.stored_security import StoredSecurity, stored_security
from ottla.cli.start.secured import Secured
from ottla.operations.secure import setup
from ottla.operations.secure.login import kept_password
from ottla.operations.secure.settings import (
    ADMINISTRATOR,
    BROKERS,
    SecureFolder,
    broker_login,
    certificate_hosts,
    secured,
)


def secure(given: Mapping[str, str], data: Path, *, several: bool) -> Secured:
    """Create the files and users for brokers with the settings `given`, unless they exist.

    Raises OttlaError if a setting contradicts security, or a file or the store is unusable.
    """
    files = SecureFolder(data.absolute())
    added = secured(given, files.stores)
    settings = BrokerSettings(given)
    hosts = certificate_hosts(settings)
    if any(is_wildcard(address.host) for address in listen_addresses(settings)):
        hosts += _names_of_this_machine()
    notes = setup.prepare(files, hosts, datetime.now(UTC))
    if several:
        added |= broker_login(given, kept_password(files.broker_password))
    notes += asyncio.run(_keep_users(BrokerSettings({**added, **given}), files, several=several))
    return Secured(files, added, notes, lambda: setup.renew(files, hosts, datetime.now(UTC)))


async def _keep_users(settings: BrokerSettings, files: SecureFolder, *, several: bool) -> list[str]:
    """Create missing users; report an administrator with another password."""
    async with stored_security(settings) as stored:
        if several:
            password = kept_password(files.broker_password)
            if not stored.has_password(BROKERS, password):
                await stored.set_password(BROKERS, password)
        return await _keep_administrator(stored, files, _place_of_store(settings))


def _place_of_store(settings: BrokerSettings) -> str:
    """Return the store's address for the option `--store`."""
    return settings.text("coordination.connect") or settings.log_dirs[0]


async def _keep_administrator(stored: StoredSecurity, files: SecureFolder, store: str) -> list[str]:
    password = files.login().password
    known = stored.has_password(ADMINISTRATOR, password)
    if known is None:
        await stored.set_password(ADMINISTRATOR, password)
    if known is not False:
        return []
    place, file = shlex.quote(store), shlex.quote(str(files.password))
    return [
        f"{ADMINISTRATOR} has another password than the one in {files.password}: write it there,"
        f" or set it back with `ottla user password {ADMINISTRATOR} --store {place} < {file}`"
    ]


def _names_of_this_machine() -> list[str]:
    """Return this machine's host names and addresses, for a listener on all interfaces."""
    names = [socket.gethostname(), socket.getfqdn()]
    try:
        found = socket.getaddrinfo(names[0], None)
    except OSError:
        # The machine cannot resolve its own name, so clients must use another name.
        found = []
    names += [str(address[0]).partition("%")[0] for *_, address in found]
    return [name for name in dict.fromkeys(names) if name and name.isascii()]
