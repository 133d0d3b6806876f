"""Files in a table's folder, whether a load names them or not."""

import os
import re
from pathlib import Path

# As a task attempt names its file.
_ATTEMPT = re.compile(r"v\d{10}-[0-9a-f]{32}-p\d+-\d{20}-[0-9A-Za-z]+\.parquet(\.tmp)?")


def files_present(folder: Path) -> tuple[list[str], list[str]]:
    """Return files whose names no task gives, and files of tasks, whether their load counts or not.

    Readers skip names that begin with a dot or an underscore, and so does this; outside the folder
    of data only Parquet files are meant.
    """
    foreign, of_tasks = [], []
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(("_", "."))]
        for name in names:
            path = (Path(place) / name).relative_to(folder)
            is_hidden = name.startswith(("_", "."))
            is_data = path.parts[0] == "data" and len(path.parts) > 1
            if is_hidden or not (is_data or name.endswith(".parquet")):
                continue
            if len(path.parts) == 2 and is_data and _ATTEMPT.fullmatch(name):
                of_tasks.append(path.as_posix())
            else:
                foreign.append(path.as_posix())
    return sorted(foreign), sorted(of_tasks)
