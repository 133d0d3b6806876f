"""What `--store` names: a store's address, a broker's settings file, or a folder of brokers."""

from pathlib import Path

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.settings import BrokerSettings, parse_properties
from ottla.cli.start.several import STORE_FILE

_OF_ONE_BROKER = "ottla-store.sqlite"


def store_settings(place: str) -> BrokerSettings:
    """Settings that name the store of `place`. Raises OttlaError where it names none."""
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
    try:
        return BrokerSettings(parse_properties(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is not UTF-8"
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"--store {place}: {why}; name a store's address (sqlite:///path/of/the/file,"
            " zookeeper://host:port), a broker's settings file, or the --data of `ottla start`",
        ) from None
