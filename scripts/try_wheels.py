"""Installs aioproducer from a folder of wheels into an empty environment, and delivers a record to an embedded broker.

python scripts/try_wheels.py dist                               by pip, other packages from the index
python scripts/try_wheels.py dist --installer uv --extra uvloop
python scripts/try_wheels.py dist --no-index                    the folder has the other packages, too
python scripts/try_wheels.py dist --expect pure                 only the wheel for every platform is offered

Nothing is compiled: source distributions are refused, and PATH has the environment alone. Prints how long it took from
the empty environment to the record.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import time
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parent.parent
PROGRAM = """
import asyncio, sys
from aioproducer import KafkaProducer, __version__, compiled
from aioproducer.broker import EmbeddedCluster

async def main():
    async with EmbeddedCluster() as cluster:
        async with KafkaProducer(bootstrap_servers=cluster.bootstrap_servers) as producer:
            metadata = await producer.send("orders", b"value", key=b"42")
    print(__version__, "compiled" if compiled else "pure", metadata.topic, metadata.offset)

if "uvloop" in sys.argv:
    import uvloop
    uvloop.run(main())
else:
    assert "uvloop" not in sys.modules
    asyncio.run(main())
"""


def installer_commands(name: str, environment: Path, python: Path) -> tuple[list[str], list[str]]:
    """What makes the environment, and what installs into it."""
    if name == "uv":
        uv = shutil.which("uv")
        if uv is None:
            sys.exit("uv is not on PATH")
        make = [uv, "venv", "--quiet", "--python", sys.executable, str(environment)]
        return make, [uv, "pip", "install", "--quiet", "--python", str(python), "--only-binary", ":all:"]
    install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"]
    return [sys.executable, "-m", "venv", str(environment)], install


def run(command: Sequence[str], environment: Mapping[str, str], folder: Path) -> str:
    done = subprocess.run(command, env=environment, cwd=folder, stdout=subprocess.PIPE, text=True)
    if done.returncode:
        sys.exit(f"failed: {' '.join(command)}")
    return done.stdout


def try_wheels(arguments: argparse.Namespace, folder: Path) -> None:
    environment = folder / "environment"
    scripts = environment / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / ("python.exe" if os.name == "nt" else "python")
    make, install = installer_commands(arguments.installer, environment, python)

    wheels = folder / "wheels"
    wheels.mkdir()
    for file in arguments.wheels.resolve().glob("*.whl"):
        if arguments.expect != "pure" or not file.name.startswith("aioproducer-") or "-none-any" in file.name:
            shutil.copy(file, wheels)

    version = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
    extras = f"[{','.join(arguments.extra)}]" if arguments.extra else ""
    install += [*(["--no-index"] if arguments.no_index else []), "--find-links", str(wheels)]
    run(make, os.environ, folder)
    alone = {**os.environ, "PATH": str(scripts), "VIRTUAL_ENV": str(environment)}
    for name in ("CC", "PYTHONPATH"):
        alone.pop(name, None)

    began = time.perf_counter()
    run([*install, f"aioproducer{extras}=={version}"], alone, folder)
    installed = time.perf_counter()
    answer = run([str(python), "-W", "error", "-c", PROGRAM, *arguments.extra], alone, folder).split()
    ended = time.perf_counter()
    expected = [version, arguments.expect, "orders", "0"]
    if answer != expected:
        sys.exit(f"expected {expected}, not {answer}")
    what = f"{arguments.installer}, {arguments.expect}, Python {sys.version.split()[0]}"
    print(f"{what}: installed in {installed - began:.1f} s, a record delivered {ended - installed:.1f} s later")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("wheels", type=Path)
    parser.add_argument("--installer", choices=["pip", "uv"], default="pip")
    parser.add_argument("--extra", action="append", default=[])
    parser.add_argument("--no-index", action="store_true")
    parser.add_argument("--expect", choices=["compiled", "pure"], default="compiled")
    with TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        try_wheels(parser.parse_args(), Path(folder))


if __name__ == "__main__":
    main()
