"""The brokers of one command on one machine: their numbers, folders and settings."""

import asyncio
import re
import shlex
import socket
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ottla.base.errors import ErrorCode, OttlaError
from ottla.base.private_files import make_private_folder, write_private
from ottla.base.settings import BrokerSettings, properties_text
from ottla.base.settings.listeners import listen_addresses
from ottla.base.system import usable_cores
from ottla.coordination.connect import kind_of

STORE_FILE = "store.sqlite"
# The setting of the address of metrics.
METRICS = "metrics.listen"
_FOLDER = re.compile(r"broker-(\d+)")
_REPLICAS = 3
# How many partitions a refusal names.
_NAMED = 5
# For brokers that are started by hand: the first consumer of a group need not wait for others.
AT_HAND = {"group.initial.rebalance.delay.ms": "0"}


@dataclass(frozen=True, slots=True)
class Plan:
    """`brokers` processes on one machine, whose ids, ports and folders are in a row.

    `texts` are the settings of the first broker; the brokers' folders are made in its log
    directories. `data` has the file of the store, unless `texts` names another store. A unit is
    made by `cores`: a broker that ends is started again.
    """

    brokers: int
    data: Path
    texts: Mapping[str, str]
    is_unit: bool = False

    @property
    def numbers(self) -> range:
        """Return the ids of the brokers."""
        named = self.texts.get("node.id", self.texts.get("broker.id", "-1"))
        first = max(int(named), -1) if named.lstrip("-").isdecimal() else -1
        first = 1 if first < 0 else first
        return range(first, first + self.brokers)

    def settings(self, number: int) -> dict[str, str]:
        """Return the settings of the broker with the id `number`."""
        shift = number - self.numbers[0]
        own = {**self.texts, "broker.id": str(number)}
        own.pop("node.id", None)
        own.pop("log.dir", None)
        for name in ("listeners", "advertised.listeners"):
            if name in own:
                own[name] = ",".join(_shifted(entry, shift) for entry in own[name].split(","))
        if METRICS in own:
            own[METRICS] = _shifted(own[METRICS], shift)
        for name in ("log.dirs", "cordoned.log.dirs"):
            if name in own:
                own[name] = ",".join(_below(root, number) for root in own[name].split(","))
        return own

    def properties(self, number: int) -> Path:
        """Return the path of a settings file with which the broker can be started separately."""
        return self.data.absolute() / f"broker-{number}.properties"

    @property
    def ends_with_others(self) -> bool:
        """Whether all brokers of the cluster are in this plan, so that all stop together."""
        kind = kind_of(self.texts["coordination.connect"])
        return kind is None or not kind.spans_machines

    def others(self) -> list[int]:
        """Return the brokers of an earlier start in these folders that this plan does not start."""
        return sorted(self._earlier() - set(self.numbers))

    def added(self) -> list[int]:
        """Return the brokers that this plan adds to those of an earlier start."""
        earlier = self._earlier()
        return [number for number in self.numbers if earlier and number not in earlier]

    def _earlier(self) -> set[int]:
        roots = map(Path, self.texts["log.dirs"].split(","))
        return {number for root in roots for number in brokers_in(root)}

    def check(self) -> None:
        """Check settings and folders. Raises OttlaError.

        It is raised if a setting is wrong, if ports overlap, if a folder has the logs of a
        single broker, or if a unit would leave out a broker that has partitions.
        """
        self._require_ports()
        for root in map(Path, self.texts["log.dirs"].split(",")):
            _require_no_member(root)
            if (root / "meta.properties").exists():
                raise self._single(root)
        if self.is_unit and (left := self.others()):
            stranded = asyncio.run(_partitions_of(self.settings(self.numbers[0]), left))
            if stranded:
                raise self._too_few(left, stranded)

    def prepare(self) -> None:
        """Create the data folder, and the settings files of brokers that are not a unit."""
        make_private_folder(self.data)
        if not self.is_unit:
            for number in self.numbers:
                # The settings may contain passwords.
                text = properties_text(self.settings(number))
                write_private(self.properties(number), text.encode())

    def _require_ports(self) -> None:
        taken: dict[int, tuple[int, str]] = {}
        for number in self.numbers:
            for address in listen_addresses(BrokerSettings(self.settings(number))):
                other, name = taken.setdefault(address.port, (number, address.name))
                if address.port and (other, name) != (number, address.name):
                    raise OttlaError(
                        ErrorCode.INVALID_CONFIG,
                        f"listeners: port {address.port} is taken twice, by {name} of broker"
                        f" {other} and {address.name} of broker {number}, because the ports of"
                        f" {self.brokers} brokers are in a row: leave {self.brokers} ports from one"
                        " listener to the next",
                    )

    def _single(self, root: Path) -> OttlaError:
        remedy = "choose another folder for several, or start one with `ottla start`"
        if self.is_unit:
            remedy += (
                ". To make it one of several, set broker.id to its own, and move its files into"
                f" {root}/broker-ID, but ottla-store.sqlite to {root / STORE_FILE}"
            )
        return OttlaError(
            ErrorCode.INVALID_CONFIG, f"{root} holds the logs of a single broker; {remedy}"
        )

    def _too_few(self, left: list[int], stranded: list[str]) -> OttlaError:
        first, needed = self.numbers[0], max(left) - self.numbers[0] + 1
        remedy = "set broker.id as before" if min(left) < first else f"start it with {needed} cores"
        named = ", ".join(stranded[:_NAMED]) + " …" * (len(stranded) > _NAMED)
        return OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{self.data} also holds broker{'s' * (len(left) > 1)} {', '.join(map(str, left))},"
            f" which would not be started, and {len(stranded)} partition(s) live there:"
            f" {named}. To have them served, {remedy}; to do with one broker fewer, start all once"
            f" more, move the partitions of the last away (`ottla broker drain {left[-1]}`), stop,"
            " and start with one fewer",
        )


def several(brokers: int, data: Path, listeners: str, given: Mapping[str, str]) -> Plan:
    """Return the plan of `--brokers`: topics have as many replicas as possible, up to three."""
    replicas = str(min(_REPLICAS, brokers))
    texts = {
        **_shared(data, listeners),
        **AT_HAND,
        "default.replication.factor": replicas,
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.replication.factor": replicas,
        "share.coordinator.state.topic.replication.factor": replicas,
        "min.insync.replicas": "2" if brokers >= _REPLICAS else "1",
    }
    return Plan(brokers, data, _merged(texts, given))


def unit(cores: str, data: Path, listeners: str, given: Mapping[str, str]) -> Plan:
    """Return the plan of `cores`, a number or auto: one broker per core, the host as its rack.

    Raises OttlaError if `cores` or a setting in `given` is invalid.
    """
    BrokerSettings({**given, "cores": cores})
    brokers = usable_cores() if cores == "auto" else int(cores)
    texts = {**_shared(data, listeners), "broker.rack": socket.gethostname()}
    return Plan(brokers, data, {**_merged(texts, given), "cores": str(brokers)}, is_unit=True)


def unit_of(settings: BrokerSettings) -> Plan:
    """Return the plan of a settings file with `cores`. Its first log directory has the store."""
    data = Path(settings.log_dirs[0])
    return unit(
        settings.text("cores"), data, ",".join(settings.texts("listeners")), settings.static
    )


def _shared(data: Path, listeners: str) -> dict[str, str]:
    return {
        "listeners": listeners,
        "log.dirs": str(data.absolute()),
        "coordination.connect": f"sqlite://{data.absolute() / STORE_FILE}",
    }


def _merged(texts: Mapping[str, str], given: Mapping[str, str]) -> dict[str, str]:
    merged = {**texts, **given}
    if "log.dir" in given and "log.dirs" not in given:
        merged["log.dirs"] = given["log.dir"]
    return merged


def _shifted(entry: str, shift: int) -> str:
    """Return an entry of `listeners` with a port further on; port 0 stays, as any free port."""
    address, _, port = entry.rpartition(":")
    return f"{address}:{int(port) + shift}" if port.isdecimal() and int(port) else entry


def _below(root: str, number: int) -> str:
    return root if root.strip() == "*" else str(Path(root.strip()).absolute() / f"broker-{number}")


async def _partitions_of(texts: Mapping[str, str], brokers: Iterable[int]) -> list[str]:
    """Return the partitions in the store that have a replica on one of `brokers`."""
    # Slow to import, and rarely needed.
    from ottla.broker.process.storage import configured_store  # noqa: PLC0415
    from ottla.metadata.loader import load_image  # noqa: PLC0415
    from ottla.storage.disk.filesystem import OsFileSystem  # noqa: PLC0415

    store = await configured_store(BrokerSettings(texts), OsFileSystem())
    try:
        topics = (await load_image(store, "")).image.topics.values()
    finally:
        await store.close()
    return [
        f"{topic.name}-{index}"
        for topic in topics
        for index, partition in enumerate(topic.partitions)
        if not set(brokers).isdisjoint(partition.replicas)
    ]


def brokers_in(data: Path) -> list[int]:
    """Return the numbers of the brokers whose folders a plan made in `data`."""
    found = (_FOLDER.fullmatch(path.parent.name) for path in data.glob("broker-*/meta.properties"))
    return sorted(int(match[1]) for match in found if match)


def require_single(data: Path) -> None:
    """Raise OttlaError if `data` belongs to a broker or to all brokers of a plan."""
    _require_no_member(data)
    require_no_brokers(data)


def _require_no_member(data: Path) -> None:
    folder = data.absolute()
    file = folder.with_suffix(".properties")
    if not _FOLDER.fullmatch(folder.name) or not (folder / "meta.properties").exists():
        return
    if file.exists() or (folder.parent / STORE_FILE).exists():
        remedy = f"Start all with {_start_of(folder.parent)}"
        if file.exists():
            remedy = f"Start that broker with `ottla broker run {shlex.quote(str(file))}`"
        raise OttlaError(
            ErrorCode.INVALID_CONFIG,
            f"{data} belongs to a broker of the cluster in {folder.parent}. {remedy}, or a new one"
            " with another --data",
        )


def require_no_brokers(data: Path) -> None:
    """Raise OttlaError if the brokers of a plan have their folders in `data`."""
    numbers = brokers_in(data)
    if not numbers:
        return
    raise OttlaError(
        ErrorCode.INVALID_CONFIG,
        f"{data} holds a cluster of {len(numbers)} brokers, and a single one would begin there "
        f"without their topics. Start the cluster with {_start_of(data)}, or a new broker with"
        " another --data",
    )


def _start_of(data: Path) -> str:
    """Return the command that starts the brokers in `data`."""
    numbers = brokers_in(data)
    option = "--brokers" if list(data.glob("broker-*.properties")) else "--cores"
    command = f"`ottla start {option} {len(numbers)} --data {shlex.quote(str(data))}`"
    # The brokers' store is elsewhere, and the folder does not name it.
    elsewhere = "" if (data / STORE_FILE).exists() else " and the coordination.connect of before"
    return command + elsewhere
