"""A broker's process that is ready to begin: `python -m chaos.spare server.properties`.

Imports are most of a start, and on a busy machine take seconds. They are done before anybody
dies; the broker begins with a line on standard input, and not at all when that ends.
"""

import sys

from ottla.broker.process.main import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]) if sys.stdin.readline() else 0)
