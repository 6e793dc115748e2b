"""Lines, windows and linger."""
