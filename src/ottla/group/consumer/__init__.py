"""Groups of the consumer protocol (KIP-848): the coordinator shares partitions out.

`heartbeating` is the way in. `group` is what must survive, changed by `records` alone;
`assignors` say who shall have what, `reconciling` how a member gets there without two ever
having the same partition, `subscriptions` which topics are meant, `describing` what a person sees.
"""
