"""Authorization: ACLs in the store, and the checks that come before every request is served.

`table` says what each API needs; `guards` are the kinds of checks. The decisions are those of
`ottla.security`. Begin with `table`.
"""
