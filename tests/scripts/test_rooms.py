from __future__ import annotations

import re
from pathlib import Path

from scripts.rooms import PACKAGES, imports, rooms_of

CHECKOUT = Path(__file__).parents[2]


def test_rooms_floors_and_arrows(tmp_path: Path) -> None:
    files = {
        "p/__init__.py": "",
        "p/top.py": "from aioproducer.p.middle import inner\nimport aioproducer.p.ground\nimport os\n",
        "p/middle/__init__.py": "",
        "p/middle/inner.py": "from aioproducer.p.ground import thing\nfrom aioproducer.p.middle import other\n",
        "p/middle/other.py": "from aioproducer.p.ground import thing\n",
        "p/ground.py": "thing = 1\n",
    }
    for name, text in files.items():
        path = tmp_path / "aioproducer" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    graph = imports(tmp_path)
    assert rooms_of("aioproducer.p", graph) == (2, 3, 3, 3, ())
    (tmp_path / "aioproducer/p/ground.py").write_text("from aioproducer.p import top\n")
    found = rooms_of("aioproducer.p", imports(tmp_path))
    assert found.floors is None
    assert {"top", "ground"} <= set(found.circle)


def test_the_table_in_the_docs_is_of_this_tree() -> None:
    graph = imports(CHECKOUT)
    page = (CHECKOUT / "docs" / "internals" / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([a-z.]+)` \| (\d+) \| (\d+) \| (\d+) \|", page, re.MULTILINE)
    counted = [(package, rooms_of(package, graph)) for package in PACKAGES]
    assert rows == [(package, str(it.rooms), str(it.arrows), str(it.floors)) for package, it in counted]
