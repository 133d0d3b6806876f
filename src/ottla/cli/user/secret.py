"""Reads a password: from a terminal, standard input or the environment; never from arguments."""

import os
import sys

import click

from ottla.base.secret_options import one_line

_VARIABLE = "OTTLA_PASSWORD"
_BYTES_MAX = 64 << 10


def read_password(user: str) -> str:
    """The new password of a user. Raises UsageError if there is none."""
    try:
        password = _read(user)
        # Bytes that are not UTF-8 may have been read as lone surrogates.
        password.encode()
    except UnicodeError:
        # The original error's text contains the password.
        raise click.UsageError(
            "the password is not UTF-8, as which clients send it: save its file as UTF-8"
        ) from None
    try:
        password = one_line(password, "the password")
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if not password:
        raise click.UsageError(
            f"the password is empty: type it, pipe it to standard input, or set {_VARIABLE}"
        )
    return password


def _read(user: str) -> str:
    password = os.environ.get(_VARIABLE)
    if password is not None:
        return password
    if sys.stdin.isatty():
        asked = click.prompt(
            f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True
        )
        return str(asked)
    # Editors and shells on Windows begin a text with a byte order mark.
    return sys.stdin.read(_BYTES_MAX).removeprefix("\ufeff")
