"""Settings of Spark with which small queries are over soonest: nothing is compiled that is worth no compiling."""

from __future__ import annotations

from pathlib import Path
from typing import Final

QUICK_START: Final = {
    "spark.ui.enabled": "false",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.sql.codegen.wholeStage": "false",
    "spark.sql.shuffle.partitions": "2",
}


def as_default_configs(directory: Path) -> dict[str, str]:
    """The environment of a command that starts a session of its own: these are then the defaults of its configs."""
    lines = [f"{name} {value}\n" for name, value in QUICK_START.items()]
    (directory / "spark-defaults.conf").write_text("".join(lines))
    return {"SPARK_CONF_DIR": str(directory)}
