"""Searches what brokers wrote for the secrets of tests; a part that finds one is red.

Secrets are registered by tests (`register`), and by the rig itself: passwords in the settings of
the brokers that it starts, private keys in the files that those settings name, and from the
brokers' SQLite stores the cluster's secret, the keys of SCRAM users and the HMACs of delegation
tokens. Logs of processes and audit files are searched at the end of the session, also where their
folders are gone by then, and so are the words of Ottla's own commands. Stores are searched for
secrets that no store may have: passwords and HMACs.
"""

import atexit
import base64
import contextlib
import hmac
import html
import json
import logging
import os
import re
import shutil
import sqlite3
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from urllib.parse import quote, quote_plus

# A shorter text is found where no secret is.
LENGTH_MIN = 8
_NAMES = re.compile(r"(password|secret|secret\.key|keystore\.key|certificate\.chain)$")
_JAAS = re.compile(r'(?:password|user_[^=\s]+|clientSecret)="([^"]+)"')
_PRIVATE_KEY = re.compile(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?)-----END", re.DOTALL)
_TOKEN_IN_AUDIT = re.compile(rb'"token":"([A-Za-z0-9_-]{22})"')
_OTTLA_COMMAND = re.compile(r"(^|/)ottla$|^ottla\.cli$")
_SCRAM_KEYS = re.compile(r"(?:stored_key|server_key)=([^,\"]+)")


class SecretSearch:
    """The secrets and the logs of one session."""

    def __init__(self) -> None:
        # What a secret is, by each form in which it may stand in a log.
        self._forms: dict[bytes, str] = {}
        # Forms of secrets that the brokers' stores have.
        self._of_stores: set[bytes] = set()
        # Of delegation tokens: the brokers' keys, and the tokens' ids.
        self._token_keys: set[str] = set()
        self._token_ids: set[str] = set()
        # The words of commands in which a secret may stand.
        self._commands: set[str] = set()
        # Links to files, which stay when a folder is removed, by the files' inodes.
        self._kept: dict[tuple[int, int], tuple[Path, Path]] = {}
        self._folder: Path | None = None
        self._homes: dict[Path, None] = {}

    # -- secrets

    def register(self, secret: str | bytes, what: str = "a secret of a test") -> None:
        """Search for `secret`, as it is and as logs, JSON, URLs, HTML and base64 have it."""
        raw = secret.encode() if isinstance(secret, str) else secret
        assert len(raw) >= LENGTH_MIN, f"{what}: shorter than {LENGTH_MIN} bytes"
        for form in forms_of(raw):
            self._forms.setdefault(form, what)

    def register_settings(self, settings: Mapping[str, str]) -> None:
        """Register the secrets in a broker's settings, and the private keys that they name."""
        for name, value in settings.items():
            if name.endswith("jaas.config"):
                self._take(_JAAS.findall(value), f"a password in {name}")
            elif _NAMES.search(name) and "BEGIN" not in value:
                self._take([value], name)
                if name == "delegation.token.secret.key":
                    self._token_keys.add(value)
            elif _NAMES.search(name):
                self._take_key(value, name)
            elif name.endswith("keystore.location") and Path(value).is_file():
                self._take_key(Path(value).read_bytes().decode("latin-1"), value)

    def register_store(self, store: Path) -> None:
        """Register the secrets in a SQLite store."""
        with contextlib.closing(sqlite3.connect(f"file:{store}?mode=ro", uri=True)) as connection:
            rows = connection.execute(
                "SELECT path, data FROM nodes WHERE path = '/cluster/secret'"
                " OR path LIKE '/config/users/%' OR path LIKE '/delegation_token/tokens/%'"
            ).fetchall()
        for path, data in rows:
            text = bytes(data).decode()
            if path == "/cluster/secret":
                secret = bytes.fromhex(json.loads(text)["secret"])
                self.register(secret, "the cluster's secret")
                self._of_stores.update(forms_of(secret))
            elif path.startswith("/delegation_token/"):
                self._token_ids.add(path.rpartition("/")[2])
            keys = _SCRAM_KEYS.findall(text)
            self._take(keys, f"a SCRAM key of {path}")
            self._of_stores.update(form for key in keys for form in forms_of(key.encode()))

    def _take(self, secrets: Iterable[str], what: str) -> None:
        for secret in secrets:
            if len(secret) >= LENGTH_MIN:
                self.register(secret, what)

    def _take_key(self, text: str, what: str) -> None:
        for key in _PRIVATE_KEY.findall(text):
            self._take(key.split(), f"a line of the private key in {what}")

    def _register_tokens(self) -> None:
        """A broker computes the HMAC of a token from its id, and a store has the id alone."""
        for key in self._token_keys:
            for token_id in self._token_ids:
                secret = hmac.digest(key.encode(), token_id.encode(), "sha512")
                self.register(secret, f"the HMAC of token {token_id}")

    # -- logs

    def on_audit_event(self, event: str, details: tuple[object, ...]) -> None:
        """A hook for `sys.addaudithook`, which hears of each program that is started."""
        if event != "subprocess.Popen" or not isinstance(words := details[1], list | tuple):
            return
        texts = [os.fsdecode(word) for word in words if isinstance(word, str | bytes | os.PathLike)]
        if any(map(_OTTLA_COMMAND.search, texts)):
            self._commands.add("\0".join(texts))

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
            ids = _TOKEN_IN_AUDIT.findall(file.read_bytes())
            # Those of tokens that were removed meanwhile, too.
            self._token_ids.update(each.decode() for each in ids)
        for store in home.rglob("*.sqlite"):
            with contextlib.suppress(sqlite3.Error):
                self.register_store(store)
            for file in store.parent.glob(f"{store.name}*"):
                self.keep(file)

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
        self._register_tokens()
        sentences: list[str] = []
        for command in self._commands:
            sentences += self._in(command.encode(errors="replace"), Path("a command of ottla"))
        for link, file in self._kept.values():
            if link.exists():
                sentences += self._in(link.read_bytes(), file)
        return sentences

    def found_below(self, folder: Path) -> list[str]:
        """The same of all files in a folder."""
        files = [one for one in sorted(folder.rglob("*")) if one.is_file()]
        return [said for file in files for said in self._in(file.read_bytes(), file)]

    def _in(self, content: bytes, file: Path) -> list[str]:
        known = self._of_stores if ".sqlite" in file.name else frozenset[bytes]()
        said = {
            f"{file}:{content[: content.index(form)].count(10) + 1}: {what} stands there"
            for form, what in self._forms.items()
            if form not in known and form in content
        }
        return sorted(said)

    def close(self) -> None:
        """Remove what was kept."""
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)


def forms_of(raw: bytes) -> set[bytes]:
    """How a secret can stand in a text: as it is, escaped, or encoded, also behind other bytes."""
    forms = {raw, raw.hex().encode(), raw.hex().upper().encode()}
    forms |= {quote(raw, safe="").encode(), quote_plus(raw).encode()}
    for shift in range(3):
        # What is before it and behind it changes the digits that it shares with them.
        encoded = base64.b64encode(b"\0" * shift + raw)[-(-shift * 4 // 3) :]
        core = encoded[: (len(raw) + shift) * 4 // 3 - -(-shift * 4 // 3)]
        forms |= {core, core.translate(bytes.maketrans(b"+/", b"-_"))}
    with contextlib.suppress(UnicodeDecodeError):
        forms |= {form.encode() for form in _escaped(raw.decode())}
    return forms


def _escaped(text: str) -> Iterator[str]:
    yield json.dumps(text)[1:-1]
    yield json.dumps(text, ensure_ascii=False)[1:-1]
    yield repr(text)[1:-1]
    yield html.escape(text)


# Of this process, which is one part of the suite.
SEARCH = SecretSearch()
register = SEARCH.register
