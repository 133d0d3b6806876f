"""Share groups (KIP-932): members that work off the same partitions side by side.

`groups` is the way in. `group` is what must survive, changed by `records` alone; `heartbeating` is
joining, reporting and leaving, `assignor` who looks after which partitions, `begun` of which
partitions the group has state, `describing` what a person sees. What became of single records is
not known here: that is `ottla.share`.
"""
