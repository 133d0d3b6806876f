"""Topics and tables in notebooks, and the data source of a Spark session. Begin with `rows`."""
