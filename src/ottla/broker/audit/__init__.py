"""The audit log: denied requests, failed logins and administrative changes, in chained lines.

Begin with `audit`. What a line is, and how damage is found, says `ottla.security.audit`.
"""
