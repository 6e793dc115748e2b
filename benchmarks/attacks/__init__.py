"""What one hostile client does to an honest one of the embedded broker."""
