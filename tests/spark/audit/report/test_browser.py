"""The report in a browser: what its script makes of tables and plots. Needs Chromium, and is skipped without it."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
from html import unescape
from pathlib import Path
from typing import Any

import pytest

from aioproducer.spark.audit.report.page import html

from .test_page import of_topics

pytestmark = [pytest.mark.once, pytest.mark.timeout(300)]

_ALONE = (
    "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
    "--disable-quic",
)  # fmt: skip
"""The browser asks nothing of any network."""

_ASKED = """<script>
const answers = [];
window.addEventListener("error", (event) => answers.push(`error: ${event.message}`));
window.addEventListener("load", () => setTimeout(async () => {
  try { answers.push(await (async () => { %s })()); } catch (error) { answers.push(`error: ${error}`); }
  const textContent = JSON.stringify(answers);
  document.body.append(Object.assign(document.createElement("pre"), {id: "answers", textContent}));
}, 200));
</script>"""

SECTION = """
const section = (title) =>
  [...document.querySelectorAll("h2")].find((heading) => heading.textContent == title).closest("section");
const shown = (section, column) => [...section.querySelectorAll("tr:not(.group) td")]
  .filter((cell) => cell.cellIndex == column && cell.offsetParent !== null).map((cell) => cell.textContent);
const partitions = section("Partitions");
const head = (section, name) => [...section.querySelectorAll("th button")].find((b) => b.textContent == name);
"""


@pytest.fixture(scope="module")
def browser() -> str:
    found = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if found is None:
        pytest.skip("there is no Chromium")
    return found


async def asked(browser: str, page: str, question: str, place: Path, *, width: int = 1200) -> Any:
    """What the JavaScript ``question`` returns in the page."""
    file = place / "report.html"
    file.write_text(page.replace("<body>", "<body>" + _ASKED % (SECTION + question)), encoding="utf-8")
    sandbox = ["--no-sandbox"] if os.geteuid() == 0 else []  # Chromium refuses root a sandbox
    options = ["--headless", *sandbox, "--disable-gpu", *_ALONE, f"--user-data-dir={place}/profile"]
    options.append(f"--window-size={width},900")
    process = await asyncio.create_subprocess_exec(
        browser,
        *options,
        "--virtual-time-budget=5000",
        "--dump-dom",
        file.as_uri(),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
    )
    try:
        dom, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    (text,) = re.findall('<pre id="answers">(.*?)</pre>', dom.decode())
    (answer,) = json.loads(unescape(text))
    return answer


TWO = of_topics(["one", "two"], partitions=12)


async def test_each_figure_has_a_plot(browser: str, tmp_path: Path) -> None:
    question = """return [...document.querySelectorAll("figure")].map((figure) =>
        [figure.querySelectorAll("canvas").length, figure.querySelectorAll(".u-series").length]);"""
    assert await asked(browser, html(TWO), question, tmp_path) == [[1, 4]] * 2 + [[1, 2]] * 2


async def test_a_table_is_sorted_by_a_click_and_the_other_way_by_the_next(browser: str, tmp_path: Path) -> None:
    """Numbers as numbers, and each topic by itself."""
    question = """head(partitions, "partition").click();
        const rising = shown(partitions, 0);
        head(partitions, "partition").click();
        return [rising, shown(partitions, 0), head(partitions, "partition").parentNode.getAttribute("aria-sort")];"""
    rising, falling, direction = await asked(browser, html(TWO), question, tmp_path)
    assert rising == [str(partition) for partition in range(12)] * 2
    assert falling == [str(partition) for partition in reversed(range(12))] * 2
    assert direction == "descending"


async def test_a_filter_leaves_rows_and_plots_that_contain_a_text(browser: str, tmp_path: Path) -> None:
    question = """const filter = partitions.querySelector("input");
        const left = () => [shown(partitions, 0).length,
          [...partitions.querySelectorAll("tr.group, figure")].filter((node) => node.offsetParent !== null).length];
        const all = left();
        filter.value = "TWO"; filter.dispatchEvent(new Event("input"));
        const some = left();
        filter.value = ""; filter.dispatchEvent(new Event("input"));
        return [all, some, left()];"""
    assert await asked(browser, html(TWO), question, tmp_path) == [[24, 4], [12, 2], [24, 4]]


@pytest.mark.parametrize("width", [1200, 420])
async def test_words_stay_whole_and_wide_tables_scroll_by_themselves(browser: str, tmp_path: Path, width: int) -> None:
    page = html(of_topics(["orders.production.europe-west-1.checkout-service.payments-authorised.v3", "two"]))
    question = """const broken = [...document.querySelectorAll("td.number, td.short, th button")]
          .filter((cell) => !cell.textContent.trim().includes(" ") && cell.textContent.trim() !== "")
          .filter((cell) => {
            const text = document.createRange(); text.selectNodeContents(cell);
            return new Set([...text.getClientRects()].map((line) => line.top)).size > 1;
          });
        const root = document.documentElement;
        return [broken.map((cell) => cell.textContent), root.scrollWidth - root.clientWidth];"""
    assert await asked(browser, page, question, tmp_path, width=width) == [[], 0]


async def test_a_plot_shows_the_value_below_the_pointer_and_zooms(browser: str, tmp_path: Path) -> None:
    question = """const plot = partitions.querySelector("figure");
        const over = plot.querySelector(".u-over");
        const box = over.getBoundingClientRect();
        const mouse = (kind, x) => (kind == "mouseup" ? document : over).dispatchEvent(new MouseEvent(kind, {
          bubbles: true, button: 0, movementX: 1,
          clientX: box.left + box.width * x, clientY: box.top + box.height / 2,
        }));
        const frame = () => new Promise((done) => setTimeout(done, 100));
        const at = async (x) => {
          mouse("mouseenter", x); mouse("mousemove", x); await frame();
          return [...plot.querySelectorAll(".u-value")].map((value) => value.textContent);
        };
        const before = [await at(0.01), await at(0.99)];
        mouse("mousedown", 0.5); mouse("mousemove", 0.75); await frame(); mouse("mouseup", 0.75); await frame();
        return [before, await at(0.01)];"""
    before, after = await asked(browser, html(TWO), question, tmp_path)
    assert before == [["0", "9"], ["11", "9"]], "partition and records"
    assert int(after[0]) > 3, "the left end is another partition now"
