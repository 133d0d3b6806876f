"""The requests and responses of all APIs in every version, one module per family of APIs."""
