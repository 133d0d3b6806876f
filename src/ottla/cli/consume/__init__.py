"""`ottla consume`, in `consume`; `reading` reads, `shape` turns a record into what is shown."""
