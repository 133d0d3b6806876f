"""`ottla consume`, in `consume`; `reader` reads, `shape` formats records."""
