"""What the commands share: options, the connection to a cluster, errors, completion of names."""
