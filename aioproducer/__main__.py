"""``python -m aioproducer``: the command line."""

from __future__ import annotations

from aioproducer.cli import main

if __name__ == "__main__":
    main()
