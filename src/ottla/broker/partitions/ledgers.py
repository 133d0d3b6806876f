"""Writes the ledger of a log: its lost and deleted offsets."""

from ottla.broker.runtime.runtime import Runtime
from ottla.storage.disk.errors import storage_error
from ottla.storage.log.log import Log


async def write_ledger(runtime: Runtime, log: Log) -> None:
    """Write the log's ledger to the disk as it is now. Raises StorageError."""
    job = log.ledger.job(log.filesystem, log.folder)
    if job is None:
        return
    try:
        if log.filesystem.in_memory:
            job.run()
        else:
            await runtime.in_thread(job.run)
    except OSError as error:
        raise storage_error(error, job.path, "write the ledger") from error
