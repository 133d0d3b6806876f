"""Check the audit log of one broker without ottla: each line has the SHA-256 of the one before.

    python examples/check_audit.py /var/lib/ottla/ottla-audit-1-*.log --head 9f3a...

With the hash of a line that was noted earlier, all lines up to it are proven.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("files", nargs="+", type=Path)
parser.add_argument("--head", help="the hash of a line, from outside the folder")
given = parser.parse_args()

previous, noted, problems = None, None, []
for file in sorted(given.files):
    for number, line in enumerate(file.read_bytes().split(b"\n"), 1):
        try:
            fields = json.loads(line) if line else None
        except ValueError:
            problems.append(f"{file}:{number}: no line (torn by a crash if a later line says so)")
            continue
        if fields is not None:
            if fields["previous"] != previous and previous is not None:
                problems.append(f"{file}:{number}: the line before it was another one")
            previous = hashlib.sha256(line).hexdigest()
            noted = fields["line"] if previous == given.head else noted
if given.head and noted is None:
    problems.append(f"no line has the hash {given.head}")
print("\n".join(problems) or f"intact; the head is {previous}")
sys.exit(3 if problems else 0)
