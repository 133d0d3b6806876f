"""Secures brokers on one machine without manual settings, for `ottla start --secure`.

`settings` has the brokers' settings and the names of the files in the data folder, `setup` creates
the certificates, and `login` has passwords and clients' settings. Begin with `settings`.
"""
