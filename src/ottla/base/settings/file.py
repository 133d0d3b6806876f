"""Reads a broker's settings file."""

from pathlib import Path

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.broker import BrokerSettings
from ottla.base.settings.properties import parse_properties


def read_broker_settings(path: Path) -> BrokerSettings:
    """The settings in `path`, whose text is UTF-8, with a byte order mark or without.

    Raises OttlaError(INVALID_CONFIG) where the file cannot be read, or a setting is wrong.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        why = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else error.strerror
        raise OttlaError(ErrorCode.INVALID_CONFIG, f"cannot read {path}: {why}") from None
    return BrokerSettings(parse_properties(text))
