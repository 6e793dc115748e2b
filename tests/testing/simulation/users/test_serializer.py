from __future__ import annotations

import pytest

from aioproducer.testing.simulation.users.serializer import turn_around


def test_values_are_turned_around_and_some_cannot_be() -> None:
    assert turn_around(b"abc") == b"cba"
    with pytest.raises(ValueError, match="not this one"):
        turn_around(bytes(38))
