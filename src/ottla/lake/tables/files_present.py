"""Lists the files in a table's folder, whether a manifest names them or not."""

import re

from ottla.lake.model.buckets import is_folder
from ottla.lake.model.contents import DATA_FOLDER, DEAD_LETTERS_FOLDER
from ottla.lake.store.store import FileStore

# The form of file names that task attempts write.
_ATTEMPT = re.compile(r"v\d{10}-[0-9a-f]{32}-p\d+-\d{20}-[0-9A-Za-z]+\.parquet(\.tmp)?")
_OF_TASKS = frozenset({DATA_FOLDER, DEAD_LETTERS_FOLDER})


def files_present(store: FileStore) -> tuple[list[str], list[str]]:
    """Return files whose names are not from tasks, and files of tasks, committed or not.

    Readers skip names that begin with a dot or an underscore; so does this function, except for the
    folder of dead letters. Outside the folders of tasks only Parquet files are returned.
    """
    foreign, of_tasks = [], []
    for top in store.top():
        if top.startswith(("_", ".")) and top not in _OF_TASKS:
            continue
        if top.endswith(".parquet"):
            foreign.append(top)
        for path in (file.path for file in store.files(f"{top}/")):
            *folders, name = path.split("/")
            is_data = top in _OF_TASKS
            if any(one.startswith(("_", ".")) for one in (*folders[1:], name)):
                continue
            in_place = len(folders) == 1 or (len(folders) == 2 and is_folder(folders[1]))
            if is_data and in_place and _ATTEMPT.fullmatch(name):
                of_tasks.append(path)
            elif is_data or name.endswith(".parquet"):
                foreign.append(path)
    return sorted(foreign), sorted(of_tasks)
