"""Authorization: ACLs in the store, and the check of every request before it is served.

Each handler declares what its API needs; `gate` checks it. The decisions are made in
`ottla.security`. Begin with `gate`.
"""
