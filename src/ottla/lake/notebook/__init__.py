"""Topics and tables in notebooks, and the data source of a Spark session. Start with `rows`."""
