"""The audit log: denied requests, failed logins and administrative changes, in hash-chained lines.

Begin with `audit`. `ottla.security.audit` defines the lines and how damage is detected.
"""
