"""Consumer groups at work: `group` decides, this appends, waits and answers.

`groups` finds the shard of a group, `shard` runs one partition of `__consumer_offsets`, `replay`
reads it back, `answer` is whoever waits.
"""

from ottla.broker.groups.groups import Groups

__all__ = ["Groups"]
