from __future__ import annotations

import re
from pathlib import Path

from scripts.long_tests import ENVIRONMENTS, PAGE, LongTest, of_report, page_of

CHECKOUT = Path(__file__).parents[2]
REPORT = """\
<testsuites><testsuite name="pytest">
<testcase classname="tests.broker.test_admins.TestKafkaTools" name="test_configs[3.9.2]" time="9.4"/>
<testcase classname="tests.spark.test_job" name="test_a" time="30.0"><failure message="no">trace</failure></testcase>
<testcase classname="tests.spark.test_job" name="test_b" time="0.1"><error message="no">trace</error></testcase>
<testcase classname="tests.spark.test_job" name="test_c" time="0.5"><skipped message="no">why</skipped></testcase>
<testcase classname="" name="tests.spark.test_frame" time="0.0"><skipped message="no">why</skipped></testcase>
</testsuite></testsuites>
"""


def test_a_report_is_read() -> None:
    assert of_report(REPORT) == [
        LongTest("tests/broker/test_admins.py", "TestKafkaTools::test_configs[3.9.2]", "passed", 9.4),
        LongTest("tests/spark/test_job.py", "test_a", "failed", 30.0),
        LongTest("tests/spark/test_job.py", "test_b", "failed", 0.1),
        LongTest("tests/spark/test_job.py", "test_c", "skipped", 0.5),
    ]


def test_the_page_counts_and_lists() -> None:
    page = page_of(of_report(REPORT), "1234abcd", "2026-11-29 12:00 UTC")
    assert "| commit | 1234abcd |" in page
    assert "| failed | 2 |" in page
    assert "| minutes, together | 1 |" in page
    assert "| tests/spark/test_job.py | `test_a` | failed | 30.0 |" in page


def test_the_page_has_every_test_that_is_marked_and_none_failed() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert "| failed | 0 |" in page
    for file in (CHECKOUT / "tests").rglob("test_*.py"):
        for name in re.findall(r"^@pytest\.mark\.long\n(?:@.*\n)*(?:async )?def (\w+)", file.read_text(), re.MULTILINE):
            assert f"`{name}" in page, f"{file.name} has changed: run scripts/test -e {','.join(ENVIRONMENTS)}"
