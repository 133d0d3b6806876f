"""Resolves `--store`: a store's address, a broker's settings file, or a folder of brokers."""

from pathlib import Path

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings, read_broker_settings
from ottla.cli.start.several import STORE_FILE

_OF_ONE_BROKER = "ottla-store.sqlite"
# The broker settings that determine its store.
_PLACES = ("log.dirs", "log.dir", "coordination.connect")


def store_settings(place: str) -> BrokerSettings:
    """Settings that name the store of `place`. Raises OttlaError if it names none."""
    scheme, colon, _ = place.partition(":")
    if colon and scheme in ("sqlite", "zookeeper"):
        return BrokerSettings({"coordination.connect": place})
    path = Path(place).absolute()
    if path.is_dir():
        several = path / STORE_FILE
        if several.exists():
            return BrokerSettings({"coordination.connect": f"sqlite://{several}"})
        if not (path / _OF_ONE_BROKER).exists() and any(path.iterdir()):
            raise OttlaError(
                ErrorCode.INVALID_CONFIG,
                f"--store {place}: it holds no store of `ottla start`; name its --data, the address"
                " of the store, or a broker's settings file",
            )
        return BrokerSettings({"log.dirs": str(path)})
    if not path.exists():
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"--store {place}: No such file or directory; name a store's address"
            " (sqlite:///path/of/the/file, zookeeper://host:port), a broker's settings file, or the"
            " --data of `ottla start`",
        )
    settings = read_broker_settings(path)
    if settings.static.keys().isdisjoint(_PLACES):
        # Kafka's default, /tmp/kafka-logs, would be a new store that no broker uses.
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"--store {place}: the file names no store; set log.dirs or coordination.connect in it"
            " as the broker has it, or name the --data of `ottla start`",
        )
    return settings
