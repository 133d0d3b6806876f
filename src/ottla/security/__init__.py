"""Authorization and authentication: ACLs and the authorizer that decides by them, logins, tokens.

A core without I/O: principals, rules and their nodes in the store are values. `broker.access` keeps
the rules in the store and has every request checked. Begin with `authorizer`.
"""
