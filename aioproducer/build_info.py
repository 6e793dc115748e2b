"""The version of this package, and whether it is compiled."""

from __future__ import annotations

import logging
from importlib.machinery import EXTENSION_SUFFIXES
from typing import Final

from aioproducer.timing import log_interval

log = logging.getLogger(__name__)

__version__ = "0.1.0"
"""That of pyproject.toml. To read it from the installed metadata would take a tenth of the package's import."""

compiled: Final = (log_interval.__file__ or "").endswith(tuple(EXTENSION_SUFFIXES))
"""All modules that can be compiled are, or none; this takes one that imports next to nothing."""

_said = False


def say_if_interpreted() -> None:
    """Logs once per process that the package is interpreted: measurements depend on that."""
    global _said
    if compiled or _said:
        return
    _said = True
    log.info(
        "aioproducer %s runs interpreted, several times slower than compiled, because it was not compiled when it was "
        "installed. Possible reasons: AIOPRODUCER_COMPILE=0; an editable install; the wheel for every platform; no C "
        "compiler, Python.h or mypy; compiling failed. `pip install -v` of the source says which",
        __version__,
    )
