"""The shell of the group coordinator: appends records, waits for commits and answers.

Begin with `groups`, which finds the shard of a group; `shard` runs one partition of
`__consumer_offsets`, `answer` has the ways in which a request gets its answer.
"""

from ottla.broker.groups.groups import Groups

__all__ = ["Groups"]
