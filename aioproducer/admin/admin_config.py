"""The configs of the admin client."""

from __future__ import annotations

from dataclasses import dataclass

from aioproducer.net.retrying_client import RetryingConfig


@dataclass(frozen=True, slots=True)
class AdminConfig(RetryingConfig):
    """The configs of an admin client."""
