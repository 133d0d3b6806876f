"""Reads `sasl.jaas.config`: one login module with its options, in Java's notation.

No class is loaded: a module's name only selects the mechanism of its options. Messages do not
repeat the text, because it contains passwords.
"""

import re
from collections.abc import Mapping
from typing import Final, NamedTuple

from ottla.base.errors import ErrorCode, OttlaError

_PACKAGE: Final = "org.apache.kafka.common.security."
_MODULES: Final = {
    f"{_PACKAGE}plain.PlainLoginModule": "PLAIN",
    f"{_PACKAGE}scram.ScramLoginModule": "SCRAM",
    f"{_PACKAGE}oauthbearer.OAuthBearerLoginModule": "OAUTHBEARER",
}
_FLAGS: Final = ("required", "requisite", "sufficient", "optional")
_HEAD: Final = re.compile(r"\s*([\w.$]+)\s+(\w+)(?=[\s;])")
_OPTION: Final = re.compile(
    r"""\s+([\w.\-]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s;"'=]+))(?=[\s;])"""
)
_END: Final = re.compile(r"\s*;\s*")
_ESCAPE: Final = re.compile(r"\\(.)", re.DOTALL)
_EXAMPLE: Final = (
    'write it as org.apache.kafka.common.security.plain.PlainLoginModule required username="…" '
    'password="…";'
)
_USER: Final = "user_"


class Jaas(NamedTuple):
    """A login module's options; `repr` leaves them out."""

    mechanism: str  # SCRAM for all mechanisms of that family.
    options: Mapping[str, str]

    def __repr__(self) -> str:
        return f"Jaas({self.mechanism!r})"

    @property
    def users(self) -> dict[str, str]:
        """Passwords by user: the options `user_NAME` of PLAIN's module."""
        return {
            name.removeprefix(_USER): value
            for name, value in self.options.items()
            if name.startswith(_USER)
        }


def parse_jaas(text: str) -> Jaas:
    """Parse the single module of a text. Raises OttlaError(INVALID_CONFIG), without the text."""
    head = _HEAD.match(text)
    if head is None or head[2].lower() not in _FLAGS:
        raise _wrong("it does not begin with a login module and `required`")
    mechanism = _MODULES.get(head[1])
    if mechanism is None:
        raise _wrong(f"there is no such login module; the modules are {', '.join(_MODULES)}")
    options: dict[str, str] = {}
    position = head.end()
    while (option := _OPTION.match(text, position)) is not None:
        name, quoted, bare = option.groups()
        if name in options:
            raise _wrong(f"option {name} is given twice")
        options[name] = bare if quoted is None else _ESCAPE.sub(r"\1", quoted)
        position = option.end()
    if _END.fullmatch(text, position) is None:
        raise _wrong('after the options NAME="VALUE" comes one semicolon, and nothing else')
    return Jaas(mechanism, options)


def _wrong(what: str) -> OttlaError:
    return OttlaError(ErrorCode.INVALID_CONFIG, f"sasl.jaas.config: {what}; {_EXAMPLE}")
