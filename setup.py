"""The part of the build that pyproject.toml cannot say: the hot modules are compiled with mypyc where that is possible,
and the links of the project's description are made absolute.

The environment variable AIOPRODUCER_COMPILE decides: "1" compiles or fails, "0" installs pure Python, unset compiles
where there is a C compiler and falls back to pure Python with a warning. An editable install is always pure Python: an
extension module beside its source would hide every later edit of it.

MYPYC_OPT_LEVEL is the C compiler's optimization, 3 unless it is set. 1 takes less time, for tests and the demo.

Compiled or not, the package has the same metadata; only the wheel's tag tells the two apart.
"""

from __future__ import annotations

import sys

if sys.version_info < (3, 11):  # noqa: UP036  pip runs this file before it knows which Python the project requires
    sys.exit(f"aioproducer needs Python 3.11 or newer; this is Python {sys.version.split()[0]}, {sys.executable}")

import ast
import atexit
import gc
import os
import re
import runpy
import shlex
import shutil
import sysconfig
import textwrap
import tomllib
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from setuptools import Extension, setup
from setuptools.command.bdist_wheel import bdist_wheel
from setuptools.command.build import build
from setuptools.command.build_ext import build_ext
from setuptools.errors import SetupError

COMPILED_MODULES = [
    "aioproducer/broker/log/record_walk.py",
    "aioproducer/compat/aiokafka/aiokafka_metadata.py",
    "aioproducer/compat/aiokafka/batch_builder.py",
    "aioproducer/timing/log_interval.py",
    "aioproducer/timing/loop_clock.py",
    "aioproducer/metrics/distribution.py",
    "aioproducer/metrics/histogram.py",
    "aioproducer/metrics/network_metrics.py",
    "aioproducer/metrics/producer_metrics.py",
    "aioproducer/metrics/sensor.py",
    "aioproducer/metrics/topic_metrics.py",
    "aioproducer/net/broker_link.py",
    "aioproducer/net/connection/connection.py",
    "aioproducer/net/connection/in_flight_request.py",
    "aioproducer/net/connection/node_api_versions.py",
    "aioproducer/protocol/big_endian.py",
    "aioproducer/protocol/codec.py",
    "aioproducer/protocol/frame_reader.py",
    "aioproducer/protocol/framing.py",
    "aioproducer/protocol/produce_answer.py",
    "aioproducer/protocol/primitives.py",
    "aioproducer/record_metadata.py",
    "aioproducer/records/batch_columns.py",
    "aioproducer/records/batch_layout.py",
    "aioproducer/records/crc32c.py",
    "aioproducer/records/record_batch_header.py",
    "aioproducer/records/record_columns.py",
    "aioproducer/records/record_writer.py",
    "aioproducer/records/written_records.py",
    "aioproducer/timing/time_slice.py",
    "aioproducer/producer/sender/alarm.py",
    "aioproducer/producer/exchange/batch_completer.py",
    "aioproducer/producer/accumulator/batch_limits.py",
    "aioproducer/producer/batches/buffer_pool.py",
    "aioproducer/producer/accumulator/built_in_partitioner.py",
    "aioproducer/producer/bulk/append.py",
    "aioproducer/producer/bulk/rows.py",
    "aioproducer/producer/bulk/tally.py",
    "aioproducer/producer/bulk/table_rows.py",
    "aioproducer/producer/diagnosis/value_history.py",
    "aioproducer/producer/scheduling/wait_history.py",
    "aioproducer/producer/exchange/completion.py",
    "aioproducer/producer/scheduling/deadlines.py",
    "aioproducer/producer/delivery/delivery.py",
    "aioproducer/producer/delivery/listeners.py",
    "aioproducer/producer/scheduling/drain.py",
    "aioproducer/producer/scheduling/first_share.py",
    "aioproducer/producer/windows/frame_limit.py",
    "aioproducer/producer/windows/line_limit.py",
    "aioproducer/producer/windows/line_window.py",
    "aioproducer/producer/windows/node_line.py",
    "aioproducer/producer/windows/send_buffer.py",
    "aioproducer/producer/windows/timely_window.py",
    "aioproducer/producer/admission/enqueued.py",
    "aioproducer/producer/diagnosis/failure_log.py",
    "aioproducer/producer/parking/held_delivery.py",
    "aioproducer/producer/accumulator/incomplete_batches.py",
    "aioproducer/producer/diagnosis/ledger.py",
    "aioproducer/producer/accumulator/murmur2.py",
    "aioproducer/producer/parking/parked_record.py",
    "aioproducer/producer/parking/parking_lot.py",
    "aioproducer/producer/accumulator/partition_queue.py",
    "aioproducer/producer/scheduling/pipeline.py",
    "aioproducer/producer/exchange/produce_exchange.py",
    "aioproducer/producer/exchange/produce_request.py",
    "aioproducer/producer/delivery/produce_result.py",
    "aioproducer/producer/batches/producer_batch.py",
    "aioproducer/producer/scheduling/readiness.py",
    "aioproducer/producer/accumulator/record_accumulator.py",
    "aioproducer/producer/record_calls.py",
    "aioproducer/producer/delivery/record_sizes.py",
    "aioproducer/producer/scheduling/schedule.py",
    "aioproducer/producer/exchange/sealer.py",
    "aioproducer/producer/sender/batch_watch.py",
    "aioproducer/producer/sender/dispatcher.py",
    "aioproducer/producer/sender/expiry.py",
    "aioproducer/producer/sender/sender_pass.py",
    "aioproducer/producer/idempotence/producer_ids.py",
    "aioproducer/producer/idempotence/sequences.py",
    "aioproducer/producer/batches/join.py",
    "aioproducer/producer/batches/split.py",
    "aioproducer/producer/parking/waiting_line.py",
    "aioproducer/producer/accumulator/wall_clock.py",
    "aioproducer/producer/windows/in_flight_windows.py",
]

PARTS = 4
"""C files that are compiled at the same time."""

COMPILERS = 1 if sys.platform == "win32" else os.cpu_count() or 1
"""That run at the same time. One on Windows, where setuptools looks for Visual C++ when it first compiles."""

TOGETHER = ("record_calls", "accumulator", "batches", "records", "delivery", "parking", "admission")
"""Modules and packages on the way of each record. They are in one of the parts as far as they fit, so that the calls
between them are inlined."""

UNFOLLOWED = ("aioproducer", "aioproducer.broker", "aioproducer.compat.aiokafka")
"""Packages whose public names no compiled module uses: mypy leaves these names, and all that they bring, unread."""

GROUP = "aioproducer"

SHIMS = f"""
#include <Python.h>

#define ALL "{GROUP}__mypyc"
#define FOUND(what) found(ALL "." #what)

/* A function of one module, which the extension of all has in a capsule. */
static void *found(const char *name) {{
    PyObject *capsule, *all = PyImport_ImportModule(ALL);
    if (all == NULL) return NULL;
    capsule = PyObject_GetAttrString(all, name + sizeof(ALL));
    Py_DECREF(all);
    if (capsule == NULL) return NULL;
    void *function = PyCapsule_GetPointer(capsule, name);
    Py_DECREF(capsule);
    return function;
}}

#ifdef Py_GIL_DISABLED
#define MODULE(stem, whole) \\
    static int stem##_exec(PyObject *module) {{ \\
        int (*function)(PyObject *) = (int (*)(PyObject *))FOUND(exec_##whole); \\
        return function == NULL ? -1 : function(module); \\
    }} \\
    static PyModuleDef_Slot stem##_slots[] = {{ \\
        {{Py_mod_exec, stem##_exec}}, \\
        {{Py_mod_multiple_interpreters, Py_MOD_MULTIPLE_INTERPRETERS_NOT_SUPPORTED}}, \\
        {{Py_mod_gil, Py_MOD_GIL_NOT_USED}}, \\
        {{0, NULL}}, \\
    }}; \\
    static struct PyModuleDef stem##_definition = {{ \\
        PyModuleDef_HEAD_INIT, .m_name = #stem, .m_slots = stem##_slots \\
    }}; \\
    PyMODINIT_FUNC PyInit_##stem(void) {{ return PyModuleDef_Init(&stem##_definition); }}
#else
#define MODULE(stem, whole) \\
    PyMODINIT_FUNC PyInit_##stem(void) {{ \\
        PyObject *(*function)(void) = (PyObject *(*)(void))FOUND(init_##whole); \\
        return function == NULL ? NULL : function(); \\
    }}
#endif

"""
"""C code of an extension that can stand in the place of each compiled module."""

MYPY = "mypy>=2.4.1,<2.5"
MYPY_SERIES = "2.4"


def find_compiler() -> str | None:
    """The command of a C compiler that is there, or None."""
    candidates = [os.environ["CC"]] if "CC" in os.environ else [sysconfig.get_config_var("CC"), "cc", "gcc", "clang"]
    return next((command for command in candidates if command and shutil.which(shlex.split(command)[0])), None)


def obstacle() -> str | None:
    """Why nothing can be compiled here, or None."""
    if sys.implementation.name != "cpython":
        return f"mypyc compiles for CPython, this is {sys.implementation.name}"
    if sysconfig.get_config_var("Py_GIL_DISABLED") and sys.version_info < (3, 14):
        return "mypy's parser cannot be built for a free-threaded Python before 3.14"  # PyO3, which it uses, refuses
    if sys.platform == "win32":
        return None  # setuptools finds Visual C++ by itself, when it compiles
    if find_compiler() is None:
        return "there is no C compiler" + (f" {os.environ['CC']!r} (CC)" if "CC" in os.environ else "")
    if not Path(sysconfig.get_path("include"), "Python.h").is_file():
        return "Python.h is missing (packages python3-dev, python3-devel)"
    return None


def compiling() -> bool:
    """Whether this build compiles, as far as can be said before trying."""
    if OPTIMIZATION not in ("0", "1", "2", "3"):
        raise SetupError(f"MYPYC_OPT_LEVEL={OPTIMIZATION}: expected 0, 1, 2 or 3")
    if WISH not in ("", "0", "1"):
        raise SetupError(f"AIOPRODUCER_COMPILE={WISH}: expected 1 (compile or fail), 0 (pure Python) or nothing (try)")
    reason = None if WISH == "0" else obstacle()
    if reason and WISH == "1":
        raise SetupError(f"AIOPRODUCER_COMPILE=1, but {reason}")
    if reason:
        warn(reason)
    return WISH != "0" and reason is None


def check_mypy() -> None:
    """Refuses to compile with a mypy that is missing or another than this one: without build isolation it may be."""
    try:
        found = version("mypy")
    except PackageNotFoundError:
        raise SetupError(f"mypy is not installed, and compiling needs {MYPY}") from None
    if not found.startswith(f"{MYPY_SERIES}."):
        raise SetupError(f"mypy {found} is installed, and compiling needs {MYPY}")


def warn(reason: str) -> None:
    print(f"warning: aioproducer will be pure Python, several times slower than compiled: {reason}", file=sys.stderr)


def description() -> str:
    """README.md with absolute links: an index shows it where there is no repository around it."""
    project = tomllib.loads(Path("pyproject.toml").read_text("utf-8"))["project"]
    absolute = runpy.run_path("scripts/links.py")["absolute"]
    return str(absolute(Path("README.md").read_text("utf-8"), project["version"], project["urls"]["Repository"]))


def docstrings() -> dict[tuple[str, ...], str]:
    """What is written of the classes in COMPILED_MODULES and of their methods, by module, class and method."""
    found: dict[tuple[str, ...], str] = {}
    for module in map(Path, COMPILED_MODULES):
        for owner in ast.parse(module.read_text("utf-8")).body:
            if isinstance(owner, ast.ClassDef):
                found[module.stem, owner.name] = ast.get_docstring(owner) or ""
                methods = [method for method in owner.body if isinstance(method, ast.FunctionDef)]
                found |= {(module.stem, owner.name, one.name): ast.get_docstring(one) or "" for one in methods}
    return found


def document(sources: Iterable[str]) -> None:
    """Puts docstrings into the C code, behind the signatures: mypyc leaves them out, and ``help`` would show none."""
    texts = docstrings()
    signature = r'(?P<before>{}PyDoc_STR\("(?:[^"\\]|\\.)*--\\n\\n)"'
    method = signature.format(r"CPyPy_(?P<name>\w+),\s+METH_[A-Z_ |]+, ")
    owner = signature.format(r"CPyType_(?P<name>\w+)_template_ = \{[^{}]*?\.tp_doc = ")

    def with_docstring(match: re.Match[str], parts: int) -> str:
        text = texts.get(tuple(match["name"].split("___")[-parts:]), "")
        in_c = "".join(chr(byte) if byte < 128 and chr(byte).isalnum() else f"\\{byte:03o}" for byte in text.encode())
        return f'{match["before"]}{in_c}"'

    for source in map(Path, sources):
        code = source.read_text("utf-8")
        code = re.sub(method, lambda match: with_docstring(match, 3), code)
        source.write_text(re.sub(owner, lambda match: with_docstring(match, 2), code), "utf-8")


def in_parts(sources: list[str], directory: Path) -> list[str]:
    """Joins C files to ``PARTS`` of them, of the same size: one for all would occupy one core for a minute, and a file
    for each module would leave no call between modules that can be inlined."""
    if len(sources) <= PARTS:
        return sources
    sources = sorted(sources, key=_place)
    sizes = [Path(source).stat().st_size for source in sources]
    parts: list[list[str]] = [[] for _ in range(PARTS)]
    before = 0
    for source, size in zip(sources, sizes, strict=True):
        parts[before * PARTS // sum(sizes)].append(source)
        before += size
    made = [directory / f"part{number}.c" for number in range(PARTS)]
    for file, part in zip(made, parts, strict=True):
        file.write_text("".join(f'#include "{Path(source).resolve().as_posix()}"\n' for source in part), "utf-8")
    return [str(file) for file in made]


def as_one(shims: list[Extension], directory: Path) -> Extension:
    """One extension that can stand in the place of each of those that mypyc makes, one for each module, to look for its
    code in the extension of all: compiling and linking 70 takes 15 s of CPU."""
    modules = ((shim.name.rpartition(".")[2], shim.name.replace(".", "___")) for shim in shims)
    source = directory / "shims.c"
    source.write_text(SHIMS + "".join(f"MODULE({stem}, {whole})\n" for stem, whole in modules), "utf-8")
    shims[0].sources = [str(source)]
    return shims[0]


def _place(source: str) -> int:
    """The place of a C file among the others: mypyc's own code and what it uses, the way of a record, the rest."""
    names = Path(source).stem.split("___")
    if len(names) == 1:
        return -1
    return next((place for place, name in enumerate(TOGETHER) if name in names), len(TOGETHER))


class Build(build):
    """Builds in a directory of its own, so that nothing of another build gets into the package, and removes it."""

    def initialize_options(self) -> None:
        super().initialize_options()
        self.build_base = f"build/{sys.implementation.cache_tag}-{'compiled' if native else 'pure'}-{os.getpid()}"

    def run(self) -> None:
        atexit.register(shutil.rmtree, self.build_base, ignore_errors=True)
        super().run()


class BuildExtensions(build_ext):
    """Puts what mypyc makes of COMPILED_MODULES in the place of the extensions that stand for them."""

    def run(self) -> None:
        if self.inplace or self.editable_mode:
            if WISH == "1":
                raise SetupError("AIOPRODUCER_COMPILE=1, but an editable install is always pure Python")
            self.extensions = []
            return
        try:
            self.compile()
        except (Exception, SystemExit) as error:  # SystemExit is how mypycify says what it found
            if WISH == "1":
                raise
            warn(textwrap.shorten(f"compiling failed: {type(error).__name__}: {error}", 200))
            for extension in self.extensions:
                Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            self.extensions = self.distribution.ext_modules = []

    def compile(self) -> None:
        check_mypy()
        from mypyc.build import mypycify

        if compiler := find_compiler():
            os.environ["CC"] = compiler
        # How strictly everything else is typed is the type checker's business, not a reason not to compile.
        config = Path(self.build_temp, "mypy.ini")
        config.parent.mkdir(parents=True, exist_ok=True)
        unfollowed = "".join(f"[mypy-{package}]\nfollow_imports = skip\n" for package in UNFOLLOWED)
        config.write_text(f"[mypy]\nignore_missing_imports = true\nfollow_imports = silent\n{unfollowed}", "utf-8")
        options = ["--config-file", str(config), "--cache-dir", os.devnull]
        self.distribution.ext_modules = mypycify(
            [*options, *COMPILED_MODULES],
            group_name=GROUP,
            opt_level=OPTIMIZATION,
            debug_level="0",
            target_dir=self.build_temp,
            multi_file=True,
        )
        gc.freeze()  # mypy's trees, which take 5 s to free one by one when the process ends
        document(source for extension in self.distribution.ext_modules for source in extension.sources)
        for extension in self.distribution.ext_modules:
            extension.sources = in_parts(extension.sources, Path(self.build_temp))
            # Nor is a warning that some compiler has learnt since.
            extension.extra_compile_args = [flag for flag in extension.extra_compile_args if flag != "-Werror"]
            if sys.platform != "win32":
                # Else each call goes through the linker's table and none is inlined, in case somebody replaces it.
                extension.extra_compile_args.append("-fvisibility=hidden")
        self.reinitialize_command(self)  # it was finalized with the stand-ins
        self.ensure_finalized()
        self.parallel = COMPILERS
        super().run()

    def build_extensions(self) -> None:
        compile_one_after_the_other = self.compiler.compile

        def compile(sources: list[str], *arguments: Any, **named: Any) -> list[str]:
            def one(source: str) -> list[str]:
                return compile_one_after_the_other([source], *arguments, **named)

            with ThreadPoolExecutor(COMPILERS) as pool:
                return [made for objects in pool.map(one, sources) for made in objects]

        self.compiler.compile = compile
        everything, *shims = made = self.extensions
        self.extensions = [everything, as_one(shims, Path(self.build_temp))]
        super().build_extensions()
        self.extensions = made
        for shim in shims[1:]:
            shutil.copy(self.get_ext_fullpath(shims[0].name), self.get_ext_fullpath(shim.name))


class Wheel(bdist_wheel):
    """Builds before the wheel gets its tag: one that could not be compiled is for every Python and platform."""

    def run(self) -> None:
        if not self.skip_build:
            self.run_command("build")
            self.skip_build = True
        self.root_is_pure = not self.distribution.has_ext_modules()
        super().run()


WISH = os.environ.get("AIOPRODUCER_COMPILE", "")
OPTIMIZATION = os.environ.get("MYPYC_OPT_LEVEL", "3")
missing = [module for module in COMPILED_MODULES if not Path(module).is_file()]
if missing:
    raise SetupError(f"COMPILED_MODULES lists files that are not there: {', '.join(missing)}")

native = compiling()
setup(
    long_description=description(),
    long_description_content_type="text/markdown",
    setup_requires=[MYPY] if native else [],
    ext_modules=[
        Extension(module.removesuffix(".py").replace("/", "."), [module]) for module in COMPILED_MODULES if native
    ],
    cmdclass={"bdist_wheel": Wheel, "build": Build, "build_ext": BuildExtensions},
)
