"""`ottla produce`, in `produce`; `sender` passes `lines` to a producer, with a progress bar."""
