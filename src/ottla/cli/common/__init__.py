"""The shared parts of commands: options, connection to a cluster, errors, completion of names."""
