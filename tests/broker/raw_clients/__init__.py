"""Clients that send frame by frame, and the brokers that they send to."""
