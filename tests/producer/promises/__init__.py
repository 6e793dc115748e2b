"""Promises of the producer on every event loop, and in the failures that broke other clients."""
