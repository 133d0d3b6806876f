"""What commands of the lake say on standard error while they run."""
