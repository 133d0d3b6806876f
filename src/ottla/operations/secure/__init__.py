"""Secures brokers on one machine without manual settings, for `ottla start --secure`.

`settings` has the settings of its brokers and the files in the data folder; `setup` makes the
certificates, and `login` has passwords and the settings of clients. Begin with `settings`.
"""
