"""Rules of a topic's name that is used again, each broken by itself."""

import pytest

from ottla.storage.directory.checkpoints import Checkpoints


def checkpoints_name_what_is_deleted(patch: pytest.MonkeyPatch) -> None:
    """What they say of a deleted log stays on the disk until they are written next (befbc1a)."""
    patch.setattr(Checkpoints, "prepare_removals", lambda _self: [])
