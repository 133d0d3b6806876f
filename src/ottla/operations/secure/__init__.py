"""Secures brokers on one machine without manual settings, for `ottla start --secure`.

`setup` makes certificates and `passwords` passwords, all kept in the data folder (`folder`);
`settings` are those of its brokers, and `login` is for its clients. Begin with `settings`.

`making` makes certificates and `passwords` passwords, all kept in the data folder (`folder`);
`settings` are those of its brokers, and `login` is what its clients need. Begin with `settings`.
"""
