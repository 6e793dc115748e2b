"""Installs the library gssapi into this environment where it can be built, so that the tests of Kerberos run.

On Linux pip builds it from C, which needs MIT Kerberos's krb5-config (Debian: libkrb5-dev). Where that is missing, the
tests are skipped, and say so.
"""

from __future__ import annotations

import importlib.util
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parent.parent / "pyproject.toml"


def main() -> None:
    if importlib.util.find_spec("gssapi") is not None or shutil.which("krb5-config") is None:
        return
    extras = tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", *extras["gssapi"]], check=True)


if __name__ == "__main__":
    main()
