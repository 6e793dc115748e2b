"""Certificates, stores, realms and identity providers for tests."""
