"""The shell of share groups (KIP-932).

`states` coordinates what must survive, on `__share_group_state`; `persister` asks for it, here or
at other brokers. `served` is one partition that this broker hands out to a group, `fetching` what a
member asks of many. `beginning` and `offsets` do for a group what concerns its state.
"""

from ottla.broker.share.sharing import Sharing

__all__ = ["Sharing"]
