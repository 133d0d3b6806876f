"""The in-sync replicas beside a majority, by figures: what each waits for, what each survives."""
