"""Opens a broker's store and log directories, which must belong to the same cluster."""

import logging
import shlex
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from typing import TypeVar

from ottla.base.chance import random_bytes
from ottla.base.ids import BrokerId
from ottla.base.private_files import exposed_folder
from ottla.base.settings import BrokerSettings
from ottla.broker.cluster.registration import (
    agree_on_cluster_id,
    known_cluster_id,
    name_cluster,
    new_cluster_id,
    prepare,
)
from ottla.broker.cluster.secret import agree_on_secret, new_secret
from ottla.broker.cluster.store_mark import StoreMark
from ottla.broker.configs.cluster_min_isr import agree_on_min_isr, initial_min_isr
from ottla.broker.process.closing import Closing
from ottla.broker.process.patience import patiently
from ottla.broker.process.seams import Seams
from ottla.broker.process.store_access import store_access
from ottla.broker.runtime.runtime import Runtime
from ottla.coordination.connect import connect
from ottla.coordination.memory import MemoryStore
from ottla.coordination.sqlite import SqliteStore
from ottla.coordination.store import Store
from ottla.metadata.paths import SENSITIVE
from ottla.storage.directory.log_directories import LogDirectories
from ottla.storage.disk.errors import storage_error
from ottla.storage.disk.filesystem import FileSystem

_log = logging.getLogger(__name__)

_STORE_FILE = "ottla-store.sqlite"

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Opened:
    """The store and the folders of one broker, and what all brokers of its cluster agree on."""

    store: Store
    # None where the store was given: its owner checks it.
    store_mark: StoreMark | None
    cluster_id: str
    secret: bytes
    log_directories: LogDirectories


async def open_storage(
    settings: BrokerSettings, seams: Seams, runtime: Runtime, closing: Closing
) -> Opened:
    """Open the store and lock the folders; `closing` closes a store that was opened here.

    Raises OttlaError: the folders are another broker's or of another cluster, the store is older
    than what this broker has seen of it, or does not answer.
    """

    async def ask(action: Callable[[], Awaitable[T]]) -> T:
        return await patiently(action, seams.clock, settings.integer("broker.session.timeout.ms"))

    paths = settings.log_dirs
    mark: StoreMark | None = None
    store = seams.store
    if store is None:
        store = await configured_store(settings, seams.filesystem)
        closing.push(store.close)
        if not seams.filesystem.in_memory:
            mark = StoreMark(seams.filesystem, paths[0], store, runtime.in_thread)
    opened = store
    found = LogDirectories.find_cluster_id(seams.filesystem, paths)
    # Another cluster's store is recognised by its id, and refused.
    if mark and await known_cluster_id(opened) in (None, found):
        await mark.check()
    proposed = found or new_cluster_id(random_bytes)
    beginning = [name_cluster(proposed), new_secret(random_bytes), initial_min_isr(settings)]
    await ask(lambda: prepare(opened, beginning))
    cluster_id = await ask(lambda: agree_on_cluster_id(opened, proposed))
    secret = await ask(lambda: agree_on_secret(opened, random_bytes))
    now_ms = seams.clock.now_ms()
    await ask(lambda: agree_on_min_isr(opened, settings, now_ms))
    log_directories = LogDirectories(
        seams.filesystem,
        paths,
        cluster_id=cluster_id,
        node_id=BrokerId(settings.broker_id),
        producer_expiration_ms=settings.integer("producer.id.expiration.ms"),
        flushes_first=settings.text("log.flush.policy") == "group",
    )
    if not seams.filesystem.in_memory:
        _warn_of_open_folders(paths)
    return Opened(opened, mark, cluster_id, secret, log_directories)


async def configured_store(settings: BrokerSettings, filesystem: FileSystem) -> Store:
    """The configured store; else a file in the first log directory, or memory like it."""
    address = settings.text("coordination.connect")
    if address:
        return await connect(address, access=store_access(settings))
    if filesystem.in_memory:
        return MemoryStore()
    folder = settings.log_dirs[0]
    try:
        filesystem.mkdir(folder)
    except OSError as error:
        raise storage_error(error, folder, "make the log directory") from error
    return await SqliteStore.open(f"{folder}/{_STORE_FILE}", SENSITIVE)


def _warn_of_open_folders(paths: Iterable[str]) -> None:
    for path in paths:
        mode = exposed_folder(path)
        if mode is not None:
            _log.warning(
                "the log directory %s is open to every user of this machine (mode %04o), and files"
                " that Ottla did not make may be, too: run `chmod -R go= %s`",
                path,
                mode,
                shlex.quote(path),
            )
