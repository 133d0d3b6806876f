"""Small files that are on the disk, whole, once a function returns."""

import os
import uuid
from pathlib import Path

from ottla.base.system import sync_folder


def write_synced(path: Path, content: bytes) -> None:
    """Write a file; after a crash it may be there in part."""
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def replace_synced(path: Path, content: bytes) -> None:
    """Write a file in one step: after a crash it is there whole or as it was before."""
    draft = path.parent / f".{uuid.uuid4().hex}.tmp"
    try:
        write_synced(draft, content)
        os.replace(draft, path)
    finally:
        draft.unlink(missing_ok=True)
    sync_folder(path.parent)
