"""Check the audit log of one broker without ottla: each line has the SHA-256 of the one before.

    python examples/check_audit.py /var/lib/ottla/ottla-audit-1-*.log --head 9f3a...

With the hash of a line that was noted earlier, the lines from the first one up to it are proven.
Without it, it is not proven that nothing was cut off at the end, or that it was not written anew.
"""

import argparse
import hashlib
import json
import sys
from pathlib import Path
from typing import Any

parser = argparse.ArgumentParser(description=__doc__)
parser.add_argument("files", nargs="+", type=Path)
parser.add_argument("--head", help="the hash of a line, from outside the folder")
given = parser.parse_args()


def parsed(line: bytes) -> dict[str, Any] | None:
    """The line; None where it is none that a broker writes."""
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return fields if isinstance(fields, dict) and {"line", "previous"} <= fields.keys() else None


first, previous, noted, problems = 0, "", None, []
torn: tuple[str, list[bytes]] = ("", [])
removed = dict[object, object]()
for file in sorted(given.files):
    for number, line in enumerate(file.read_bytes().removesuffix(b"\n").split(b"\n"), 1):
        fields = parsed(line)
        if fields is None:
            torn = torn[0] or f"{file}:{number}", [*torn[1], line]
            continue
        crash = hashlib.sha256(b"\n".join(torn[1])).hexdigest()
        if torn[1] and (fields.get("event"), fields.get("sha256")) != ("torn", crash):
            problems.append(f"{torn[0]}: no line, and not what a crash left behind")
        torn = "", []
        if not first:
            first, before = fields["line"], fields["previous"]
        elif fields["previous"] != previous:
            problems.append(f"{file}:{number}: the line before it was another one")
        if fields.get("event") in ("missing", "altered"):
            problems.append(f"{file}:{number}: the broker found that lines were cut off or changed")
        elif fields.get("event") == "removed":
            removed[fields.get("last")] = fields.get("hash")
        previous = hashlib.sha256(line).hexdigest()
        noted = fields["line"] if previous == given.head else noted
if first and before != removed.get(first - 1, "0" * 64 if first == 1 else ""):
    problems.append(f"lines before line {first} are missing, and none says that retention did it")
if given.head and noted is None:
    problems.append(f"no line has the hash {given.head}")
print("\n".join(problems) or f"intact from line {first} on; the head is {previous}")
sys.exit(3 if problems else 0)
