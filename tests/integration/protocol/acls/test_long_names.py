"""Long names, by a client that may do nothing."""

from pathlib import Path

from rig.broker import ottla
from rig.wire_client import WireClient

from ottla.wire.messages.metadata import MetadataRequest, MetadataRequestTopic
from tests.integration.protocol.acls.matrix import CLIENT, SETTINGS, Subject

_NAMES, _CHARACTERS = 250, 32_000


def test_denied_names_fill_neither_log_nor_memory(tmp_path: Path) -> None:
    """The log names them in short, and no decision about them is kept."""
    with ottla(settings=SETTINGS, folder=tmp_path) as node:
        subject = Subject(node.port)
        before = _resident_bytes(node.process.pid)
        with WireClient(node.port, from_host=CLIENT) as client:
            for begin in range(0, 32 * _NAMES, _NAMES):
                names = [str(number) + "x" * _CHARACTERS for number in range(begin, begin + _NAMES)]
                asked = [MetadataRequestTopic(name=name) for name in names]
                found = client.call(MetadataRequest(topics=asked), 12).topics
                assert {one.error_code for one in found} == {29}
        # All names together have 256 MB.
        assert _resident_bytes(node.process.pid) - before < 160 << 20
        subject.close()
    assert (tmp_path / "ottla.log").stat().st_size < 1 << 20


def _resident_bytes(process_id: int) -> int:
    return int(Path(f"/proc/{process_id}/statm").read_text().split()[1]) * 4096
