"""A producer under stress."""
