"""Messages of the lake's commands on standard error while they run."""
