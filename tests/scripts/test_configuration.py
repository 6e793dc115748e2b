"""docs/configuration.md, docs/broker-configuration.md and aioproducer/config_types.py say what the tables say."""

import runpy
from pathlib import Path

from aioproducer.broker.configs.broker_config import BROKER_CONFIGS
from aioproducer.configs.config_def import table
from aioproducer.configs.producer_config import ProducerConfig
from aioproducer.configs.unsupported import BY_PRODUCERS

ROOT = Path(__file__).parents[2]


def test_the_page_is_what_the_table_says() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "configuration.py"))
    written = (ROOT / "docs" / "configuration.md").read_text()
    assert written == script["page"](table(ProducerConfig).values(), BY_PRODUCERS), (
        "docs/configuration.md is out of date: run python scripts/configuration.py"
    )


def test_the_brokers_page_is_what_the_tables_say() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "broker_configuration.py"))
    written = (ROOT / "docs" / "broker-configuration.md").read_text()
    assert written == script["page"](BROKER_CONFIGS.values()), (
        "docs/broker-configuration.md is out of date: run python scripts/broker_configuration.py"
    )


def test_the_types_are_what_the_tables_say() -> None:
    script = runpy.run_path(str(ROOT / "scripts" / "config_types.py"))
    written = (ROOT / "aioproducer" / "config_types.py").read_text()
    assert written == script["module"](), (
        "aioproducer/config_types.py is out of date: run python scripts/config_types.py"
    )
