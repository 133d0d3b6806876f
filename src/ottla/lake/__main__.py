"""The load as a `spark-submit` main.

spark-submit --master … -m is not there for Python, so submit this file:

    spark-submit $(python -c 'import ottla.lake.__main__ as m; print(m.__file__)') \
        flights --to /lake/flights --bootstrap broker:9092

Exits with 0 after a load (also of nothing new), 1 where it did not load, with the reason.
"""

import argparse
import sys

from ottla.base.errors import OttlaError
from ottla.lake.loading import load
from ottla.lake.telling import skipped_lines


def main(arguments: list[str] | None = None) -> int:
    """Parse `arguments` (default: the command line), load, print one line."""
    parser = argparse.ArgumentParser(description="Load a topic into a lake table, exactly once.")
    parser.add_argument("topic")
    parser.add_argument("--to", required=True, metavar="DIR", help="the table's folder")
    parser.add_argument("--bootstrap", default="localhost:9092", metavar="HOST:PORT")
    parser.add_argument("--start", default="last-load")
    parser.add_argument("--end", default="latest")
    parser.add_argument(
        "--skip-unreadable", action="store_true", help="leave out batches that cannot be read"
    )
    told = parser.parse_args(arguments)
    try:
        done = load(
            told.topic,
            told.to,
            bootstrap=told.bootstrap,
            start=told.start,
            end=told.end,
            skip_unreadable=told.skip_unreadable,
        )
    except OttlaError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for line in skipped_lines(told.topic, done.skipped):
        sys.stderr.write(f"{line}\n")
    sys.stdout.write(f"{done.rows} rows in {done.files} files, {done.seconds:.1f} s\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
