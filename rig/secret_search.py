"""Searches what brokers wrote for the secrets of tests; a part that finds one is red.

Secrets are registered by tests (`register`), and by the rig itself: passwords in the settings of
the brokers that it starts, private keys in the files that those settings name, and from the
brokers' SQLite stores the cluster's secret and the keys of SCRAM users. Logs of processes and audit
files are searched at the end of the session, also where their folders are gone by then.
"""

import atexit
import base64
import contextlib
import json
import logging
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path

# A shorter text is found where no secret is.
LENGTH_MIN = 8
_NAMES = re.compile(r"(password|secret|keystore\.key|certificate\.chain)$")
_JAAS = re.compile(r'(?:password|user_[^=\s]+|clientSecret)="([^"]+)"')
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?)-----END", re.DOTALL)
_SCRAM_KEYS = re.compile(r"(?:stored_key|server_key)=([^,\"]+)")


class SecretSearch:
    """The secrets and the logs of one session."""

    def __init__(self) -> None:
        # What a secret is, by each form in which it may stand in a log.
        self._forms: dict[bytes, str] = {}
        # Links to files, which stay when a folder is removed, by the files' inodes.
        self._kept: dict[tuple[int, int], tuple[Path, Path]] = {}
        self._folder: Path | None = None
        self._homes: dict[Path, None] = {}

    # -- secrets

    def register(self, secret: str | bytes, what: str = "a secret of a test") -> None:
        """Search for `secret`, as it is, in base64 and in hex."""
        raw = secret.encode() if isinstance(secret, str) else secret
        assert len(raw) >= LENGTH_MIN, f"{what}: shorter than {LENGTH_MIN} bytes"
        for form in (raw, base64.b64encode(raw).rstrip(b"="), raw.hex().encode()):
            self._forms.setdefault(form, what)

    def register_settings(self, settings: Mapping[str, str]) -> None:
        """Register the secrets in a broker's settings, and the private keys that they name."""
        for name, value in settings.items():
            if name.endswith("jaas.config"):
                self._take(_JAAS.findall(value), f"a password in {name}")
            elif _NAMES.search(name) and "BEGIN" not in value:
                self._take([value], name)
            elif _NAMES.search(name):
                self._take_key(value, name)
            elif name.endswith("keystore.location") and Path(value).is_file():
                self._take_key(Path(value).read_bytes().decode("latin-1"), value)

    def register_store(self, store: Path) -> None:
        """Register the secrets in a SQLite store."""
        with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            rows = connection.execute(
                "SELECT path, data FROM nodes WHERE path = '/cluster/secret'"
                " OR path LIKE '/config/users/%'"
            ).fetchall()
        for path, data in rows:
            text = bytes(data).decode()
            if path == "/cluster/secret":
                self.register(bytes.fromhex(json.loads(text)["secret"]), "the cluster's secret")
            self._take(_SCRAM_KEYS.findall(text), f"a SCRAM key of {path}")

    def _take(self, secrets: Iterable[str], what: str) -> None:
        for secret in secrets:
            if len(secret) >= LENGTH_MIN:
                self.register(secret, what)

    def _take_key(self, text: str, what: str) -> None:
        for key in _PRIVATE_KEY.findall(text):
            self._take(key.split(), f"a line of the private key in {what}")

    # -- logs

    def keep(self, file: Path) -> None:
        """Search a file at the end, though its name may be gone by then."""
        state = file.stat()
        key = state.st_dev, state.st_ino
        if key in self._kept:
            return
        if self._folder is None:
            self._folder = Path(tempfile.mkdtemp(prefix="rig-searched-"))
            # Benchmarks and other programs search nothing.
            atexit.register(self.close)
        link = self._folder / str(len(self._kept))
        try:
            os.link(file, link)
        except OSError:
            # On another disk: as it is when it is searched, if it is there then.
            link = file
        self._kept[key] = link, file

    def watch(self, home: Path) -> None:
        """Search the audit files and stores below a broker's folder, at the end or when it goes."""
        self._homes[home] = None

    def leave(self, home: Path) -> None:
        """A broker's folder goes now."""
        self._homes.pop(home, None)
        for file in home.rglob("ottla-audit-*.log"):
            self.keep(file)
        for store in home.rglob("*.sqlite"):
            with contextlib.suppress(sqlite3.Error):
                self.register_store(store)

    def handler(self) -> logging.Handler:
        """Keeps what brokers in the process of the tests log."""
        folder = Path(tempfile.mkdtemp(prefix="rig-searched-"))
        handler = logging.FileHandler(folder / "log", errors="backslashreplace")
        handler.setFormatter(logging.Formatter("%(message)s"))
        self.keep(folder / "log")
        shutil.rmtree(folder)
        return handler

    # -- the search

    def found(self) -> list[str]:
        """A sentence for each secret in each file, without the secret."""
        for home in list(self._homes):
            self.leave(home)
        sentences: list[str] = []
        for link, file in self._kept.values():
            if link.exists():
                sentences += self._in(link.read_bytes(), file)
        return sentences

    def _in(self, content: bytes, file: Path) -> list[str]:
        return [
            f"{file}:{content[: content.index(form)].count(10) + 1}: {what} stands there"
            for form, what in self._forms.items()
            if form in content
        ]

    def close(self) -> None:
        """Remove what was kept."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


# Of this process, which is one part of the suite.
SEARCH = SecretSearch()
register = SEARCH.register
