"""Spark on clusters and servers of its own, and the programs that are submitted to them."""
