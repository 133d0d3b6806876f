"""Share groups at work (KIP-932).

Begin with `sharing`: the sessions of members, and `served`, one partition that this broker delivers
to a group. `fetching` is one ShareFetch. `states` is the share coordinator on
`__share_group_state`; `persister` sends operations to it, at this broker or another; `group_state`
does so for a whole group. `dead_letters` and `dead_letter_sender` write dead letters.
"""

from ottla.broker.share.sharing import Sharing

__all__ = ["Sharing"]
