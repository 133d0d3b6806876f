"""Requests and responses of all APIs in every version, a module for each family of APIs."""
