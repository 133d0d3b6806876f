"""`ottla store` before it reaches a store."""

import sys
from pathlib import Path

import pytest

from ottla.base.errors import OttlaError
from ottla.cli.store import secure


def test_without_kazoo_the_extra_to_install_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker says so, too; here it was a traceback."""
    monkeypatch.setitem(sys.modules, "kazoo.client", None)
    for name in [name for name in sys.modules if name.startswith("ottla.coordination.zookeeper")]:
        monkeypatch.delitem(sys.modules, name)
    file = tmp_path / "server.properties"
    file.write_text(
        "coordination.connect=zookeeper://127.0.0.1:1/x\n"
        "coordination.user=ottla\ncoordination.password=x\n"
    )
    with pytest.raises(OttlaError, match=r"install `ottla\[zookeeper\]`"):
        secure.main([str(file)], standalone_mode=False)
