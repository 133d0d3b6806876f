"""Authorization: ACLs in the store, and the checks that come before every request is served.

Each handler declares what its API needs; `gate` checks it. The decisions are those of
`ottla.security`. Begin with `gate`.
"""
