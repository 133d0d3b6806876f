"""The files and settings that `--secure` has prepared for brokers about to start."""

import logging
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass

from ottla.base.errors import OttlaError
from ottla.operations.secure.folder import SecureFolder

_log = logging.getLogger(__name__)

_DAY_S = 86_400


@dataclass(frozen=True, slots=True)
class Secured:
    """Files, settings to add to the given ones, and messages for the user."""

    files: SecureFolder
    settings: dict[str, str]
    notes: list[str]
    # Renews certificates that expire soon; returns more messages.
    renew: Callable[[], list[str]]

    def keep_renewed(self) -> None:
        """Renew certificates for as long as this process runs; brokers reload them."""
        threading.Thread(target=self._renew_daily, name="ottla-renewal", daemon=True).start()

    def _renew_daily(self) -> None:
        while True:
            time.sleep(_DAY_S)
            try:
                notes = self.renew()
            except (OSError, OttlaError) as error:
                _log.error(
                    "the certificates in %s cannot be renewed (%s): clients refuse them once they"
                    " have expired",
                    self.files.folder,
                    error,
                )
                continue
            for note in notes:
                _log.warning("%s", note)
