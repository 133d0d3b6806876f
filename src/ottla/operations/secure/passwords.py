"""Random passwords, each in a file of its own for its owner alone."""

from base64 import urlsafe_b64encode
from pathlib import Path
from typing import Final

from ottla.base.chance import random_bytes
from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.private_files import write_private

_BYTES: Final = 24


def new_password() -> str:
    """Letters, digits, hyphens and underscores: no file and no shell reads them otherwise."""
    return urlsafe_b64encode(random_bytes(_BYTES)).decode()


def kept_password(path: Path) -> str:
    """The password in a file; a new one where there is none. Raises OttlaError, OSError."""
    if not path.exists():
        # On the disk before it is used: a user whose password is lost could not log in.
        write_private(path, f"{new_password()}\n".encode(), durably=True)
    password = path.read_text(encoding="utf-8-sig", errors="replace").strip()
    if not password or any(character in password for character in '"\\\n\ufffd'):
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{path} holds no password: one line without quotes and backslashes; remove the file"
            " for a new one",
        )
    return password
