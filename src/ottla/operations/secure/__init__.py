"""Secured brokers on one machine without settings by hand: `ottla start --secure`.

`making` makes certificates and `passwords` passwords, all kept in the data folder (`folder`);
`settings` are those of its brokers, and `login` is what its clients need. Begin with `settings`.
"""
