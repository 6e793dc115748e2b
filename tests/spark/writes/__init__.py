"""Helpers for the writes of a query: epochs, checkpoints, a cluster with faults."""
