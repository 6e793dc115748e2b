"""Services that produce, and their HTTP load."""
