"""`ottla start`, in `start`; `several` runs several brokers under one command."""
