"""Authorization: the ACLs in the store, and the check of every request before it is served.

The declaration of each API names the permissions that it needs, and `Gate` checks them.
`ottla.security` makes the decisions. Begin with `part`.
"""
