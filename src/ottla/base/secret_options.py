"""Recognises secret options of storages, catalogs and Spark, and resolves their references.

No option has a secret as plain text: `${NAME}` refers to the environment variable NAME. Pure.
"""

import re
from collections.abc import Mapping
from typing import Final

from ottla.base.errors import ErrorCode, OttlaError

# The environment variable with the path of a client's settings.
CONFIG_VARIABLE: Final = "OTTLA_CONFIG"
# Names such as `…credentials.provider` and `…secret.file` say where a secret is, and are not
# secret.
_NAME = re.compile(
    r"(secret|passw(or)?d|jaas[._-]config|token|credentials?|sas|"
    r"(secret|access|account|private|shared)[._-]?(access[._-]?)?key)$"
    r"|account[._-]key\.|sas[._-](key|token)",
    re.IGNORECASE,
)
_IN_URL = re.compile(r"://[^/@\s:]*:(?!\$\{)[^/@\s]+@")
_VARIABLE = re.compile(r"\$\{(\w+)\}")
# Pairs as in Java options (-Dname=value), in a login module and in a URL.
_PAIR = re.compile(r"""([\w.-]+)\s*=\s*("[^"]*"|'[^']*'|[^\s;,&]+)""")
_OF_CLIENTS = re.compile(r"\s*(sasl|ssl|security|bootstrap)\.[\w.-]+\s*[=:]")
# Spark puts these onto the command lines of its processes.
_OF_JAVA = re.compile(r"JavaOptions$", re.IGNORECASE)


def is_secret(name: str, value: str) -> bool:
    """Whether an option's value is a secret written in plain text, not a reference.

    A secret may also be a part of the value, such as a URL's password, or a Java option.
    """
    written = _NAME.search(name) and not _VARIABLE.search(value)
    return bool(written or _IN_URL.search(value) or _has_secret(value))


def is_setting(text: str) -> bool:
    """Whether a value that should be a file's path is settings instead."""
    return "\n" in text or bool(_OF_CLIENTS.match(text)) or _has_secret(text)


def require_path(text: str, what: str) -> None:
    """Refuse settings given as a path, without showing them. Raises OttlaError."""
    if is_setting(text):
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{what} is no path but settings, which are not shown here as one may be a secret: "
            "write them into a file that others cannot read, and name that",
        )


def _has_secret(text: str) -> bool:
    """Whether one of the `NAME=VALUE` in `text` is a secret in plain text."""
    pairs = _PAIR.findall(text)
    return any(_NAME.search(name) and not _VARIABLE.search(value) for name, value in pairs)


def resolved(
    options: Mapping[str, str], where: str, environment: Mapping[str, str]
) -> dict[str, str]:
    """Return the options with `${NAME}` replaced. Raises OttlaError for a plain-text secret.

    `where` names the place of the options in messages, which never have a value.
    """
    return {name: _resolved(name, value, where, environment) for name, value in options.items()}


def expanded(text: str, what: str, environment: Mapping[str, str]) -> str:
    """Return `text` with its variables replaced. Raises OttlaError if one is not set."""

    def of(match: re.Match[str]) -> str:
        found = environment.get(match[1])
        if found is None:
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"{what} names the environment variable {match[1]}, which is not set",
            )
        return found

    return _VARIABLE.sub(of, text)


def _resolved(name: str, value: str, where: str, environment: Mapping[str, str]) -> str:
    if _OF_JAVA.search(name) and is_secret("", _VARIABLE.sub("variable", value)):
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{name} in {where} has a secret, and all users of a machine see it in the list of its "
            "processes, a variable's value, too: write the Java options into a file that others "
            f"cannot read, on each machine, and {name}=@FILE",
        )
    if is_secret(name, value):
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{name} is a secret, and {where} is no place for it: set an environment variable, and "
            f"write {name}=${{VARIABLE}}, or leave it out where the storage's library finds it in "
            "the environment by itself",
        )
    return expanded(value, f"{name} in {where}", environment)


def one_line(text: str, what: str) -> str:
    """Return a password file's single line, without its line end.

    Raises ValueError if there are more lines, because programs differ in the line that they choose.
    """
    first, _, rest = text.partition("\n")
    if rest.strip():
        count = len(text.rstrip().splitlines())
        raise ValueError(f"{what} has {count} lines: give one line, and nothing behind it")
    return first.rstrip("\r")
