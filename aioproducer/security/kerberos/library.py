"""The library of the extra ``gssapi``, imported when it is needed."""

from __future__ import annotations

from typing import Any

from aioproducer.errors import ConfigException


def gssapi() -> Any:
    """The library that speaks Kerberos; a :class:`ConfigException` says how to get it."""
    try:
        import gssapi
    except (ImportError, OSError) as missing:  # OSError: there is no Kerberos on this machine
        raise ConfigException(
            f"GSSAPI needs the library gssapi, and Kerberos's own ({missing}): pip install 'aioproducer[gssapi]', on "
            "Linux with a C compiler and libkrb5-dev",
            name="sasl.mechanism",
        ) from missing
    return gssapi
