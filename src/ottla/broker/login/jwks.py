"""The public keys of an issuer, reloaded periodically in the background.

If a reload fails, the previous keys stay in use.
"""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass

from ottla.base.errors import OttlaError, shortened
from ottla.broker.runtime.runtime import Runtime
from ottla.network.oauth.daemon import in_daemon
from ottla.network.oauth.issuer_reader import FetchFailed
from ottla.security.jwt.verify import PublicKeys, read_keys
from ottla.security.sasl.bearer import RefusedToken

_log = logging.getLogger(__name__)

# A token with an unknown key triggers a reload, but not more often than this, because any client
# can send such tokens.
_LOOK_AGAIN_MS = 10_000
_NAMES_LOGGED = 10
# The shortest interval between reloads; a setting of 0 would query the issuer without a pause.
_REFRESH_MS_MIN = 1_000


@dataclass(frozen=True, slots=True)
class JwksPace:
    """The intervals between reloads, in milliseconds; shorter after a failure."""

    refresh_ms: int
    backoff_ms: int
    backoff_ms_max: int


class Jwks:
    """The public keys at one address. `url` names it in the log; `read` blocks."""

    def __init__(
        self, url: str, read: Callable[[], bytes], pace: JwksPace, runtime: Runtime
    ) -> None:
        self._url = url
        self._read = read
        self._pace = pace
        self._runtime = runtime
        self._keys: PublicKeys | None = None
        self._why_none = "they have not been read yet"
        self._failures = 0
        self._looked_again_ms: int | None = None
        # Done when the reload in progress has ended; None if there is none.
        self._reading: asyncio.Future[None] | None = None
        runtime.spawn(self._refresh())

    async def keys(self) -> PublicKeys:
        """Return the keys of the last reload. Raises RefusedToken if none were loaded yet."""
        if self._keys is None and not self._failures:
            await self._read_once()
        if self._keys is None:
            raise RefusedToken(
                f"the keys at sasl.oauthbearer.jwks.endpoint.url {self._url} cannot be read: "
                f"{self._why_none}",
                "no keys",
            )
        return self._keys

    async def look_again(self) -> bool:
        """Reload the keys now; return False if they were reloaded a short time ago."""
        now_ms = self._runtime.clock.monotonic_ms()
        last_ms = self._looked_again_ms
        if self._reading is None:
            if last_ms is not None and now_ms - last_ms < _LOOK_AGAIN_MS:
                return False
            self._looked_again_ms = now_ms
        await self._read_once()
        return True

    async def _refresh(self) -> None:
        while True:
            await self._read_once()
            await asyncio.sleep(self._pause_ms() / 1000)

    def _pause_ms(self) -> int:
        pace = self._pace
        if not self._failures:
            return max(pace.refresh_ms, _REFRESH_MS_MIN)
        doubled = max(pace.backoff_ms, 1) << min(self._failures - 1, 16)
        return min(doubled, max(pace.backoff_ms_max, 1))

    async def _read_once(self) -> None:
        """Reload the keys; concurrent callers wait for the same reload."""
        if self._reading is not None:
            await asyncio.shield(self._reading)
            return
        self._reading = self._runtime.loop.create_future()
        try:
            self._take(await in_daemon(self._read))
        except (FetchFailed, OttlaError, ValueError) as error:
            self._fail(error.message if isinstance(error, OttlaError) else str(error))
        finally:
            reading, self._reading = self._reading, None
            reading.set_result(None)

    def _take(self, document: bytes) -> None:
        keys = read_keys(document)
        before, self._keys = self._keys, keys
        if self._failures:
            _log.info("the keys at %s are read again", self._url)
        self._failures = 0
        known = None if before is None else {key.key_id for key in before.usable}
        if known != {key.key_id for key in keys.usable}:
            self._log_names(keys)
        if keys.ignored and (before is None or before.ignored != keys.ignored):
            why = shortened("; ".join(keys.ignored))
            _log.warning("keys at %s are not used: %s", self._url, why)

    def _log_names(self, keys: PublicKeys) -> None:
        if keys.usable:
            names = [shortened(repr(key.key_id)) for key in keys.usable[:_NAMES_LOGGED]]
            more = (
                "" if len(names) == len(keys.usable) else f", and others; {len(keys.usable)} in all"
            )
            _log.info("keys for tokens at %s: %s%s", self._url, ", ".join(names), more)
            return
        _log.error(
            "there is no public key for signatures at %s, and no client can log in by OAUTHBEARER: "
            "has the issuer withdrawn its keys? It is read again",
            self._url,
        )

    def _fail(self, why: str) -> None:
        self._failures += 1
        # Logged once per series of failures, since there may be many retries a minute.
        if self._failures == 1 or why != self._why_none:
            kept = (
                "no client can log in by OAUTHBEARER"
                if self._keys is None
                else "the last good ones stay in use"
            )
            _log.error(
                "the keys for tokens at %s cannot be read (%s), and %s: check "
                "sasl.oauthbearer.jwks.endpoint.url and the issuer; it is tried again",
                self._url,
                why,
                kept,
            )
        self._why_none = why
