"""Reads a password: from a terminal, standard input or the environment; never from arguments."""

import os
import sys

import click

_VARIABLE = "OTTLA_PASSWORD"


def read_password(user: str) -> str:
    """The new password of a user. Raises UsageError where there is none."""
    password = os.environ.get(_VARIABLE)
    if password is None and sys.stdin.isatty():
        password = click.prompt(
            f"Password of {user}", hide_input=True, confirmation_prompt=True, err=True
        )
    elif password is None:
        password = sys.stdin.readline().rstrip("\r\n")
    if not password:
        raise click.UsageError(
            f"the password is empty: type it, pipe it to standard input, or set {_VARIABLE}"
        )
    return str(password)
