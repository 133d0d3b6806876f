"""The log levels of a broker's loggers as dynamic settings (KIP-412)."""

import logging
from collections.abc import Sequence

from ottla.base.errors import ErrorCode, OttlaError, shortened
from ottla.base.settings.alter import Alteration, AlterOperation
from ottla.base.settings.resolve import ConfigSource, Resolved, Synonym
from ottla.base.settings.tables.setting import ConfigType, Setting, UpdateMode

ROOT = "ottla"

# Kafka's names of levels, and Python's numbers.
_LEVELS = {
    "TRACE": logging.DEBUG,
    "DEBUG": logging.DEBUG,
    "INFO": logging.INFO,
    "WARN": logging.WARNING,
    "ERROR": logging.ERROR,
    "FATAL": logging.CRITICAL,
}
_NAMES = {
    logging.DEBUG: "DEBUG",
    logging.INFO: "INFO",
    logging.WARNING: "WARN",
    logging.ERROR: "ERROR",
    logging.CRITICAL: "FATAL",
}


def loggers() -> list[Resolved]:
    """Return the level of each of Ottla's loggers."""
    names = {ROOT} | {n for n in logging.root.manager.loggerDict if n.startswith(f"{ROOT}.")}
    return [_described(name) for name in sorted(names)]


def alter_loggers(alterations: Sequence[Alteration], *, validate_only: bool) -> None:
    """Set levels, or delete them so that the parent's level applies.

    If it raises OttlaError, no level was changed.
    """
    known = {resolved.setting.name for resolved in loggers()}
    for name, operation, text in alterations:
        if name not in known:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"Logger {shortened(name)} does not exist; describe the broker's loggers to "
                "see their names",
            )
        if operation == AlterOperation.DELETE:
            if name == ROOT:
                raise OttlaError(
                    ErrorCode.INVALID_REQUEST, f"Removing the log level of {ROOT} is not allowed"
                )
        elif operation != AlterOperation.SET:
            raise OttlaError(
                ErrorCode.INVALID_REQUEST, "Log levels can only be set or deleted, not edited"
            )
        elif text not in _LEVELS:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"Cannot set the log level of {name} to {shortened(str(text))}; choose from "
                f"{', '.join(_LEVELS)}",
            )
    if validate_only:
        return
    for name, operation, text in alterations:
        level = _LEVELS[text or ""] if operation == AlterOperation.SET else logging.NOTSET
        logging.getLogger(name).setLevel(level)


def _described(name: str) -> Resolved:
    level = logging.getLogger(name).getEffectiveLevel()
    text = _NAMES.get(level, str(level))
    setting = Setting(
        name, ConfigType.STRING, "INFO", None, UpdateMode.PER_BROKER, "The level of this logger."
    )
    source = ConfigSource.DYNAMIC_BROKER_LOGGER_CONFIG
    return Resolved(setting, text, source, (Synonym(name, text, source),))
