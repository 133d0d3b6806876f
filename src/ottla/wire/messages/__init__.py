"""One module per API: the request, the response and their parts, for every version."""
