"""The whole producer authenticates and encrypts."""
