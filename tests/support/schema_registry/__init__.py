"""A schema registry for tests, and classes of messages."""
