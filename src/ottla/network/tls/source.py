"""Provides the TLS context of a listener or a client, and renews it when its files change.

If the new files are broken, the previous context stays in use.
"""

import contextlib
import logging
import os
import ssl
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.private_files import exposed_file
from ottla.network.tls.context import client_context, server_context
from ottla.network.tls.doubts import certificate_doubts, certificates
from ottla.network.tls.material import Material, load_material
from ottla.network.tls.options import TlsOptions
from ottla.security.certificate import Certificate, read_certificate

_log = logging.getLogger(__name__)

# Returns warnings about keys and certificates.
Doubts = Callable[[Material], list[str]]
Build = Callable[[TlsOptions, Material], ssl.SSLContext]
# How often the files are checked for changes, if there are new connections.
_LOOK_S = 2.0
# How often warnings about an unchanged certificate are repeated.
_DAY_S = 86_400.0
# Distinguishes versions of a file: its modification time, size and inode.
_Stamp = tuple[int, int, int] | None


class TlsSource:
    """Provides contexts for new connections; open connections keep their context.

    `name` appears in log lines. Raises OttlaError if the first context cannot be created.
    """

    def __init__(
        self,
        name: str,
        options: Callable[[], TlsOptions],
        build: Build,
        *,
        doubts: Doubts | None = None,
    ) -> None:
        """Create the first context.

        Only listeners pass `doubts`. They also warn of key files that other users can read.
        """
        self._name = name
        self._find_doubts = doubts
        self._options = options
        self._build = build
        self._seen_options = options()
        self._seen = _stamps(self._seen_options)
        self._looked_s = 0.0
        # A time in the sense of `newest`; 0 until the first connection.
        self._warned_s = 0.0
        material = load_material(self._seen_options)
        self.context = build(self._seen_options, material)
        complaint = _complaint(material)
        if complaint:
            _log.error("%s: %s", name, complaint)
        self._warn(material)

    def newest(self, now_s: float) -> ssl.SSLContext:
        """Return the context for a new connection. `now_s` never goes back."""
        if now_s - self._looked_s >= _LOOK_S:
            self._looked_s = now_s
            if not self.refresh():
                self._warn_daily(now_s)
        return self.context

    def refresh(self) -> bool:
        """Create a new context if options or files have changed; return whether one was created."""
        try:
            options = self._options()
            stamps = _stamps(options)
            if stamps == self._seen and options == self._seen_options:
                return False
            # A broken file is reported once, until it changes again.
            self._seen, self._seen_options = stamps, options
            material = load_material(options)
            complaint = _complaint(material)
            if complaint:
                raise OttlaError(ErrorCode.INVALID_CONFIG, complaint)
            self.context = self._build(options, material)
        except OttlaError as error:
            _log.error(
                "%s: new keys or certificates are refused, and the former ones stay: %s",
                self._name,
                error.message,
            )
            return False
        _log.info("%s: new keys and certificates are in use for new connections", self._name)
        self._warn(material)
        return True

    def _warn_daily(self, now_s: float) -> None:
        """Repeat the warnings once a day, because certificates expire while a broker runs."""
        if self._find_doubts is None or now_s < self._warned_s + _DAY_S:
            return
        is_first, self._warned_s = self._warned_s == 0.0, now_s
        if is_first:
            return
        with contextlib.suppress(OttlaError):
            self._warn(load_material(self._seen_options))

    def _warn(self, material: Material) -> None:
        if self._find_doubts is None:
            return
        for doubt in self._find_doubts(material):
            _log.warning("%s: %s", self._name, doubt)
        path = self._seen_options.keystore.location
        mode = exposed_file(path) if path else None
        if mode is not None:
            _log.warning(
                "%s: other users of this machine may read the private key in %s (mode %04o): run"
                " `chmod 600` on it, and replace the key if they may have read it",
                self._name,
                path,
                mode,
            )


def server_source(name: str, options: Callable[[], TlsOptions], hosts: Sequence[str]) -> TlsSource:
    """Create the source of a listener.

    `hosts` are the host names that clients connect to, as far as the settings name them.
    """

    def doubts(material: Material) -> list[str]:
        # Python finds only the authorities in the system's bundle file, not those in a directory.
        public = ssl.create_default_context().get_ca_certs(binary_form=True)
        return certificate_doubts(material, hosts, public, datetime.now(UTC))

    return TlsSource(name, options, server_context, doubts=doubts)


def client_source(name: str, options: Callable[[], TlsOptions]) -> TlsSource:
    """Create the source of a client, which opens connections."""
    return TlsSource(name, options, client_context)


def own_certificate(material: Material) -> Certificate | None:
    """Return the certificate that this end presents. Raises ValueError if it cannot be read."""
    der = next(certificates(material.key_and_chain), None)
    return None if der is None else read_certificate(der)


def _complaint(material: Material) -> str:
    """Return what is wrong with the validity period of the own certificate; "" if nothing is."""
    try:
        own = own_certificate(material)
    except ValueError:
        return "the certificate of the key store cannot be read"
    if own is None:
        return ""
    now = datetime.now(UTC)
    if own.not_before <= now < own.not_after:
        return ""
    word = "expired" if own.not_after <= now else "is not valid yet"
    when = own.not_after if own.not_after <= now else own.not_before
    return (
        f"the certificate of {own.subject} {word} ({when:%Y-%m-%d %H:%M} UTC), and other ends do"
        " not accept it: renew it (ssl.keystore.location), or mend this machine's clock"
    )


def _stamps(options: TlsOptions) -> tuple[_Stamp, ...]:
    return tuple(_stamp(path) for path in options.files)


def _stamp(path: str) -> _Stamp:
    try:
        found = os.stat(path)
    except OSError:
        return None
    return found.st_mtime_ns, found.st_size, found.st_ino
