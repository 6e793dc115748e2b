"""Clients that know nothing of this project, on the embedded broker."""
