"""The command `ottla start`; `several` runs several brokers under one command."""
