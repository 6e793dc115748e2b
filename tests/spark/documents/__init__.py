"""The documents about Spark: their examples are run as they stand."""
