"""The package under test is built as it was ordered, and its modules may be compiled."""
