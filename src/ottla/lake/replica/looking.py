"""What of the log directories that tasks are to read can be seen here to be none of the topic's.

No error: where the tasks run on other machines only these see the directories. What is not read
from files is fetched, and rows, hashes and ledgers are the same.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

from ottla.lake.replica.files import find_folder
from ottla.lake.source import TopicDescription
from ottla.storage.directory.meta_properties import META_PROPERTIES, decode

_log = logging.getLogger(__name__)


def warn_of_log_dirs(described: TopicDescription, log_dirs: Sequence[str]) -> None:
    """Log a line for each directory that has no files of the topic here."""
    for log_dir in log_dirs:
        why = _why_not(described, log_dir)
        if why is not None:
            _log.warning(
                "%s; tasks that see no more of it than this process fetch %s from its leaders",
                why,
                described.topic,
            )


def _why_not(described: TopicDescription, log_dir: str) -> str | None:
    """Why tasks that run here read no files in `log_dir`; None where they do."""
    folder = Path(log_dir)
    if not folder.is_dir():
        what = "is no folder" if os.path.lexists(folder) else "does not exist"
        return f"--log-dir {log_dir} {what}"
    try:
        owner = decode((folder / META_PROPERTIES).read_bytes())
    except FileNotFoundError:
        return f"--log-dir {log_dir} is no broker's log directory: it has no {META_PROPERTIES}"
    except (OSError, ValueError) as error:
        return f"--log-dir {log_dir}: {META_PROPERTIES} can't be read ({error})"
    if described.cluster_id is not None and owner.cluster_id != described.cluster_id:
        return (
            f"--log-dir {log_dir} is of cluster {owner.cluster_id}, and {described.topic} of "
            f"{described.cluster_id}"
        )
    topic_id = described.topic_id
    if topic_id is None:
        return f"the brokers give {described.topic} no id, by which --log-dir {log_dir} is checked"
    if any(find_folder([log_dir], described.topic, p, topic_id) for p in described.bounds):
        return None
    return (
        f"--log-dir {log_dir} has no partition of {described.topic} with id {topic_id} (of broker "
        f"{owner.node_id}): another broker has them, or the topic was made anew"
    )
