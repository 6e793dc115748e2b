"""The files around the package agree with each other: what one says of versions and addresses, the others say."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
PYTHONS = re.findall(
    r"^Programming Language :: Python :: (3\.\d+)$", "\n".join(PYPROJECT["project"]["classifiers"]), re.M
)


def read(name: str) -> str:
    return (ROOT / name).read_text()


def test_the_address_of_the_repository_stands_in_one_file() -> None:
    repository = PYPROJECT["project"]["urls"]["Repository"]
    texts = [
        path for pattern in ("*.md", ".github/**/*.*", "docs/**/*.md", "*.py", "*.ini") for path in ROOT.glob(pattern)
    ]
    assert len(texts) > 30
    assert [path for path in texts if path.is_file() and repository in path.read_text()] == []


@pytest.mark.parametrize("python", PYTHONS)
def test_every_python_is_tested_built_and_installed(python: str) -> None:
    short = python.replace(".", "")
    assert f"cp{short}-*" in PYPROJECT["tool"]["cibuildwheel"]["build"]
    assert f"py{short}-" in read("tox.ini")
    assert f'python: "{python}"' in read(".github/workflows/tests.yml")
    matrix = re.search(r"python: \[(.*)\]", read(".github/workflows/release.yml"))
    assert matrix is not None
    assert f'"{python}"' in matrix[1]


def test_nothing_else_claims_a_python() -> None:
    assert len(PYPROJECT["tool"]["cibuildwheel"]["build"]) == len(PYTHONS)
    assert PYPROJECT["project"]["requires-python"] == f">={PYTHONS[0]}"


def test_a_commit_is_checked_by_the_tools_of_the_project() -> None:
    required = re.findall(r'additional_dependencies: (?:&\w+ )?\["(.*)"\]', read(".pre-commit-config.yaml"))
    groups = PYPROJECT["dependency-groups"]
    assert required == [*groups["lint"], *groups["imports"]]


def test_uv_is_told_which_groups_never_meet() -> None:
    """Without that, `uv sync` and `uv run` fail: uv finds one version of PySpark for all groups that may meet."""
    groups = PYPROJECT["dependency-groups"]
    of_pyspark = [{"group": name} for name, group in groups.items() if any("pyspark[" in str(one) for one in group)]
    assert PYPROJECT["tool"]["uv"]["conflicts"] == [of_pyspark]
    assert "uv.lock" in read(".gitignore").splitlines(), "what it resolves is of the day"


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_scripts_that_are_there_with_the_least_rights(workflow: Path) -> None:
    text = workflow.read_text()
    assert "\npermissions:\n  contents: read\n" in text
    assert text.count("runs-on:") == text.count("timeout-minutes:")
    for script in re.findall(r"\bscripts/[\w.]+", text):
        assert (ROOT / script).is_file(), script
    # A name, a title or a branch is anybody's text: it reaches a shell as a variable only.
    assert not re.search(r"run:.*\$\{\{ *github\.(event|head_ref|ref_name)", text)


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_runs_what_cannot_change_unseen(workflow: Path) -> None:
    """A tag or a branch of an action can be moved; what a job installs without a version is of the day."""
    text = workflow.read_text()
    used = re.findall(r"uses: (.*)", text)
    assert used
    assert [one for one in used if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", one)] == []
    for step in re.findall(r"uses: actions/checkout@.*\n(?:        .*\n)*", text):
        pushes = "persist-credentials: true # for git push" in step
        assert pushes or "persist-credentials: false" in step, "every later step could read the token"
    assert text.count("# for git push") == text.count("git push ")
    for line in re.findall(r"pip install (.*)", text):
        assert all(re.fullmatch(r"[\w-]+==[\w.]+", one) for one in line.split()), line


def test_an_action_has_one_version() -> None:
    used = {one for workflow in WORKFLOWS for one in re.findall(r"uses: ([\w-]+/[\w-]+).*@(\w+)", workflow.read_text())}
    assert len(used) == len({action for action, _ in used})


def test_only_the_push_of_a_tag_publishes() -> None:
    """A run by hand may be of a tag, too."""
    text = read(".github/workflows/release.yml")
    jobs = re.split(r"^  (?=[\w-]+:$)", text.partition("\njobs:\n")[2], flags=re.M)[1:]
    publishing = [job for job in jobs if re.search(r"^ +\S+: write", job, re.M)]
    assert [job.partition(":")[0] for job in publishing] == ["attest", "publish", "announce"]
    for job in publishing:
        assert "\n    if: github.event_name == 'push' && github.ref_type == 'tag'\n" in job


def test_there_are_workflows() -> None:
    assert [path.stem for path in WORKFLOWS] == ["codeql", "docs", "release", "tests"]
