"""Whose topic is whose while a broker is attacked."""

from __future__ import annotations

HONEST = "honest"
"""The honest client's, whose partition 0 it uses. Hostile clients may fetch it, too."""

HOSTILE = "hostile"
"""Hostile clients write to it."""

PARTITIONS = 200
"""Those of the latter."""
