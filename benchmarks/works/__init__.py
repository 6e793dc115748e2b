"""What clients are given to do."""
