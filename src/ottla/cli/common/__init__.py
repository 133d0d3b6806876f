"""Code that commands share: options, connections to a cluster, errors, completion of names."""
