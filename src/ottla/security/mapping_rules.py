r"""`ssl.principal.mapping.rules`: maps the name in a client's certificate to its principal's name.

As in Kafka (KIP-371) the first rule that matches the whole name decides: `DEFAULT` leaves it,
`RULE:^CN=(.*?),.*$/$1/L` replaces it, with L or U in lower or upper case. A slash in a pattern is
written `\/`.
"""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

from ottla.base.errors import ErrorCode, OttlaError, shortened

_DEFAULT = "DEFAULT"
_RULE = "RULE:"
_PART = r"((?:\\.|[^\\/])*)"
_FORM = re.compile(rf"\s*(?:(DEFAULT)|RULE:{_PART}/{_PART}/([LU]?))\s*(?:[,\n]|$)")
_GROUP = re.compile(r"\$(\d)")
_CASES: dict[str, Callable[[str], str]] = {"": str, "L": str.lower, "U": str.upper}


class _Rule(NamedTuple):
    # None: the name stays as it is.
    pattern: Any | None
    replacement: str
    case: Callable[[str], str]


class MappingRules:
    """The rules of a broker. Raises OttlaError(INVALID_CONFIG) if they are invalid."""

    def __init__(self, text: str) -> None:
        self._rules: list[_Rule] = []
        position = 0
        text = text.strip()
        while position < len(text):
            found = _FORM.match(text, position)
            if found is None:
                raise _invalid(text[position:], "write RULE:pattern/replacement/[LU], or DEFAULT")
            self._rules.append(_rule(*found.groups()))
            position = found.end()
        if not self._rules:
            self._rules.append(_Rule(None, "", str))

    def name(self, subject: str) -> str | None:
        """Return the principal's name for a certificate's subject; None if no rule matches."""
        for rule in self._rules:
            if rule.pattern is None:
                return subject
            found = rule.pattern.fullmatch(subject)
            if found is not None:
                return rule.case(_replaced(rule.replacement, found.groups()))
        return None


def _rule(default: str | None, pattern: str, replacement: str, case: str | None) -> _Rule:
    if default:
        return _Rule(None, "", str)
    # Names come from strangers' certificates, and RE2 takes linear time. Few brokers need it.
    import re2  # noqa: PLC0415

    try:
        compiled = re2.compile(pattern)
    except re2.error as error:
        raise _invalid(pattern, f"RE2 cannot read the pattern ({error})") from None
    return _Rule(compiled, replacement, _CASES[case or ""])


def _replaced(replacement: str, groups: tuple[str | None, ...]) -> str:
    def group(match: re.Match[str]) -> str:
        number = int(match[1])
        if not 0 < number <= len(groups):
            return str(match[0])
        return groups[number - 1] or ""

    return str(_GROUP.sub(group, replacement))


def _invalid(text: str, complaint: str) -> OttlaError:
    return OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"Invalid value {shortened(text)} for configuration ssl.principal.mapping.rules: "
        f"{complaint}",
    )
