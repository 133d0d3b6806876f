"""share.auto.offset.reset: where a group starts reading a partition new to it."""

import re
from dataclasses import dataclass

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings.declaration.setting import Validator, Value

_DURATION = re.compile(
    r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+)(?:\.(\d{1,9}))?S)?)?", re.IGNORECASE
)
_BY_DURATION = "by_duration:"


@dataclass(frozen=True, slots=True)
class Reset:
    """The log's start or end; or, with `back_ms`, a time that long before now."""

    to_start: bool = False
    back_ms: int | None = None


def parse_reset(text: str) -> Reset:
    """Read the setting: latest, earliest or by_duration:PnDTnHnMn.nS.

    Raises OttlaError (INVALID_CONFIG).
    """
    word = text.strip()
    if word.lower() == "latest":
        return Reset()
    if word.lower() == "earliest":
        return Reset(to_start=True)
    if word.lower().startswith(_BY_DURATION):
        found = _DURATION.fullmatch(word[len(_BY_DURATION) :])
        if found is not None and any(found.groups()) and not word.upper().endswith("T"):
            days, hours, minutes, seconds, fraction = found.groups()
            total_s = int(days or 0) * 86_400 + int(hours or 0) * 3_600 + int(minutes or 0) * 60
            millis = int((fraction or "").ljust(3, "0")[:3])
            return Reset(back_ms=(total_s + int(seconds or 0)) * 1_000 + millis)
    raise OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"Invalid value {text} for configuration share.auto.offset.reset: it must be latest, "
        "earliest or by_duration:<ISO 8601 duration>, like by_duration:PT1H",
    )


def offset_reset() -> Validator:
    """What `parse_reset` can read."""
    return Validator("latest, earliest or by_duration:PnDTnHnMn.nS", _complaint)


def _complaint(value: Value) -> str:
    try:
        parse_reset(str(value))
    except OttlaError:
        return "it must be latest, earliest, or by_duration: and a duration like PT1H"
    return ""
