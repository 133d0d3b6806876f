"""`ottla produce`, in `produce`; `sending` hands lines (`lines`) to a producer, under a bar."""
