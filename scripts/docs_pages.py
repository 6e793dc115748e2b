"""Writes the pages of the documentation's site: ``python scripts/docs_pages.py DIRECTORY``; ``scripts/docs`` builds it.

The guides in docs/ are copied, README.md becomes the first page, and the reference is written from the code: errors,
the command line and the Python API. Links to files that are no pages lead to the repository.
"""

from __future__ import annotations

import importlib
import inspect
import re
import shutil
import sys
import tomllib
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import typer

from aioproducer import errors
from aioproducer.cli.app import make_app

ROOT = Path(__file__).parent.parent
REPOSITORY = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["urls"]["Repository"]
LINK = re.compile(r"(?P<text>\[[^\[\]]*)?\]\((?!https?://|#)(?P<to>[^()\s#]*)(?P<anchor>#[^()\s]*)?\)")
CODE = re.compile(r"^```.*?^```$|`[^`\n]*`", re.DOTALL | re.MULTILINE)

PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}
"""By the path in the repository, those that have another one on the site."""

MODULES = (
    "aioproducer",
    "aioproducer.sync",
    "aioproducer.admin",
    "aioproducer.reader",
    "aioproducer.serializers",
    "aioproducer.schema_registry",
    "aioproducer.delivery_log",
    "aioproducer.metrics_topic",
    "aioproducer.dead_letters",
    "aioproducer.transform",
    "aioproducer.outbox",
    "aioproducer.integrations.fastapi",
    "aioproducer.integrations.aiohttp",
    "aioproducer.integrations.answer",
    "aioproducer.integrations.service_health",
    "aioproducer.integrations.prometheus",
    "aioproducer.integrations.opentelemetry",
    "aioproducer.compat.aiokafka",
    "aioproducer.broker",
    "aioproducer.testing",
)
"""The public modules that have a page of the Python API. Spark's are in docs/spark.md: without PySpark they cannot be
imported."""

ERRORS = ("aioproducer.errors", "aioproducer.outbox", "aioproducer.schema_registry")
"""The modules from which errors are imported."""

STYLE = """\
.md-grid { max-width: 76rem; }
.md-typeset table:not([class]) { font-size: .64rem; }
.md-typeset__table { display: block; }
.doc-contents .doc-heading code { font-size: .7rem; }
@media print { .md-tabs, .md-sidebar { display: none; } }
"""


def pages() -> Iterator[tuple[str, str]]:
    """The path of each page, and its text."""
    sources = [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for source in sources:
        path = source.relative_to(ROOT).as_posix()
        yield page_of(path), with_site_links(source.read_text("utf-8"), path)
    yield "reference/errors.md", errors_page()
    yield "reference/cli.md", cli_page()
    yield "reference/api/index.md", api_index()
    for name in MODULES:
        yield f"reference/api/{name}.md", api_page(name)


def page_of(path: str) -> str:
    return PAGES.get(path, path.removeprefix("docs/"))


def with_site_links(text: str, path: str) -> str:
    """The text of the document at ``path`` with links that are right on the site."""
    parts, at = [], 0
    for code in CODE.finditer(text):
        parts += [LINK.sub(lambda link: site_link(link, path), text[at : code.start()]), code[0]]
        at = code.end()
    return "".join([*parts, LINK.sub(lambda link: site_link(link, path), text[at:])])


def site_link(link: re.Match[str], path: str) -> str:
    text, to, anchor = link["text"] or "", link["to"], link["anchor"] or ""
    if to.startswith("../../") and path == "README.md":  # of the site that shows the repository
        return f"{text}]({REPOSITORY}/{to.removeprefix('../../')})"
    target = target_of(to, path)
    if target.as_posix() not in PAGES and target.parts[0] != "docs":
        return f"{text}]({REPOSITORY}/blob/main/{target.as_posix()}{anchor})"
    if text.endswith(".md"):  # the name of a file says nothing on a site
        text = f"[{title(ROOT / target)}"
    here = Path(page_of(path)).parent
    return f"{text}]({'../' * len(here.parts)}{page_of(target.as_posix())}{anchor})"


def target_of(to: str, path: str) -> Path:
    """What a link of the document at ``path`` leads to, as a path in the repository."""
    target = ((ROOT / path).parent / to).resolve()
    if not (target.is_relative_to(ROOT.resolve()) and target.exists()):
        sys.exit(f"{path} links to {to}, which is not there")
    return target.relative_to(ROOT.resolve())


def title(document: Path) -> str:
    return document.read_text("utf-8").partition("\n")[0].removeprefix("# ")


def errors_page() -> str:
    families: dict[tuple[str, ModuleType], list[type[errors.KafkaError]]] = {}
    for room in ERRORS:
        for error in public_errors(importlib.import_module(room)):
            families.setdefault((room, sys.modules[error.__module__]), []).append(error)
    lines = [
        "# Errors",
        "",
        "Every error of the package's own is a `KafkaError`. Import it from `aioproducer.errors`, unless its section",
        "names another module. Names and codes are Kafka's, if Kafka has the error.",
        "[Spark](../spark.md#exactly-once) describes the errors of the data source for Spark.",
        "",
        "- *retriable*: the same request may succeed later; the producer retries these itself.",
        "- *abortable*: abort the transaction, then continue.",
        "- *fatal*: this producer cannot be used any more.",
        "",
    ]
    for (room, module), classes in families.items():
        title = (module.__doc__ or "").partition("\n")[0].rstrip(".")
        lines += [f"## {title}", ""]
        if room != ERRORS[0]:
            lines += [f"Imported from `{room}`.", ""]
        lines += ["| error | code | kind | meaning | what to do |", "|---|---:|---|---|---|"]
        lines += [error_row(error) for error in classes]
        lines.append("")
    return "\n".join(lines)


def public_errors(module: ModuleType) -> Iterator[type[errors.KafkaError]]:
    for name in getattr(module, "__all__", None) or vars(module):
        value = getattr(module, name)
        if inspect.isclass(value) and issubclass(value, errors.KafkaError):
            yield value


def error_row(error: type[errors.KafkaError]) -> str:
    code = str(int(error.code)) if "code" in vars(error) else ""
    kind = ", ".join(flag for flag in ("retriable", "abortable", "fatal") if getattr(error, flag))
    meaning = (inspect.getdoc(error) or "").partition("\n\n")[0].replace("\n", " ")
    cells = (f"`{error.__name__}`", code, kind, prose(meaning), prose(error.advice))
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def prose(text: str) -> str:
    """reStructuredText's code and roles as Markdown's code."""
    text = re.sub(r":\w+:`~?([^`]*)`", r"`\1`", text)
    return text.replace("``", "`").replace("<", "&lt;") if "`" not in text.replace("``", "") else text


def cli_page() -> str:
    lines = ["# Command line", ""]
    command = typer.main.get_command(make_app(None))
    for path, one in commands(command, ("aioproducer",)):
        context = one.make_context(" ".join(path), [], resilient_parsing=True)
        lines += [f"{'#' * min(len(path) + 1, 4)} {' '.join(path)}", "", one.help or "", ""]
        lines += ["```text", one.get_usage(context), "```", ""]
        options = [parameter for parameter in one.params if not getattr(parameter, "hidden", False)]
        if options:
            lines += ["| option | default | what it does |", "|---|---|---|", *map(option_row, options), ""]
    return "\n".join(lines)


def commands(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Each command of click's, or of the copy of click that newer versions of typer have."""
    yield path, command
    for name, one in getattr(command, "commands", {}).items():
        yield from commands(one, (*path, name))


def option_row(parameter: Any) -> str:
    name = ", ".join((*parameter.opts, *parameter.secondary_opts))
    if not name.startswith("-"):
        name = name.upper()  # an argument
    default = "" if parameter.default in (None, False, ()) or callable(parameter.default) else f"`{parameter.default}`"
    text = " ".join(str(getattr(parameter, "help", None) or "").split())
    return f"| `{name}` | {default} | {text} |".replace("<", "&lt;")


def api_index() -> str:
    lines = ["# Python API", "", "| module | about |", "|---|---|"]
    for name in MODULES:
        about = (inspect.getdoc(importlib.import_module(name)) or "").partition("\n")[0]
        lines.append(f"| [`{name}`]({name}.md) | {prose(about)} |")
    return "\n".join(lines) + "\n"


def api_page(name: str) -> str:
    module = importlib.import_module(name)
    lines = [f"# {name}", "", prose((inspect.getdoc(module) or "").partition("\n\n")[0]), ""]
    for home in public_homes(module):
        lines += [f"::: {home}", ""]
    return "\n".join(lines)


def public_homes(module: ModuleType) -> Iterable[str]:
    """Where each public name is defined, as that is what has the documentation."""
    for name in getattr(module, "__all__", None) or defined_in(module):
        value = getattr(module, name)
        home = getattr(value, "__module__", None) if inspect.isclass(value) or inspect.isfunction(value) else None
        if home is None or not home.startswith("aioproducer"):
            home = getattr(module, "_HOMES", {}).get(name, module.__name__)
        yield f"{home}.{name}"


def defined_in(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", None) == module.__name__
    ]


def write(directory: Path) -> None:
    """Replaces what is in the directory by the pages and the pictures."""
    shutil.rmtree(directory, ignore_errors=True)
    for path, text in pages():
        (directory / path).parent.mkdir(parents=True, exist_ok=True)
        (directory / path).write_text(text, "utf-8")
    for picture in [*(ROOT / "docs").rglob("*.svg"), *(ROOT / "docs").rglob("*.png")]:
        shutil.copy(picture, directory / picture.relative_to(ROOT / "docs"))
    (directory / "site.css").write_text(STYLE, "utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
