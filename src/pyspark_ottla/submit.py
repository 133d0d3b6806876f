"""Runs `ottla lake …` under `spark-submit`, with the same arguments and exit codes.

`spark-submit` runs a Python file and no command, so pass it this file:

    spark-submit --master … $(python -c 'import pyspark_ottla.submit as m; print(m.__file__)') \
        run flights.toml
    spark-submit --master … $(python -c 'import pyspark_ottla.submit as m; print(m.__file__)') \
        flights --to /lake/flights --bootstrap broker:9092

The verb may be left out; it is then `load`.
"""

import sys

from ottla.cli.command import main
from ottla.cli.lake import lake


def words_of(words: list[str]) -> list[str]:
    """Return the arguments of `ottla` for the arguments of this file."""
    is_load = bool(words) and not words[0].startswith("-") and words[0] not in lake.commands
    return ["lake", *(["load"] if is_load else []), *words]


if __name__ == "__main__":
    sys.argv = ["ottla", *words_of(sys.argv[1:])]
    main()
