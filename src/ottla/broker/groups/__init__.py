"""The shell of the group coordinator: appends records, waits for commits and answers.

Start reading with `groups`, which finds the shard of a group. `shard` runs one partition of
`__consumer_offsets`, and `answer` sends answers to requests.
"""

from ottla.broker.groups.groups import Groups

__all__ = ["Groups"]
