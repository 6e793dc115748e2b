"""Writes docs/broker-configuration.md from the tables of configs: ``python scripts/broker_configuration.py``."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from aioproducer.broker.configs.broker_config import BROKER_CONFIGS
from aioproducer.broker.configs.dynamic_configs import UpdateMode, update_mode
from aioproducer.broker.configs.listeners import LISTENER_CONFIGS, LISTENER_LIMITS, LISTENER_STORES
from aioproducer.broker.configs.topic_config import SERVER_NAMES, TOPIC_CONFIGS, TOPIC_CONFIGS_WITHOUT_EFFECT
from aioproducer.configs.config_def import ConfigKey, as_text

TARGET = Path(__file__).parent.parent / "docs" / "broker-configuration.md"

HEAD = """\
# Configuration of the embedded broker

The broker's configs, with Kafka's names: `EmbeddedCluster(configs={"num.partitions": 6})` or
`aioproducer broker -X num.partitions=6`. All nodes share them. A name that is not in this table and an invalid value
raise `ConfigException`. Written by `python scripts/broker_configuration.py` from the tables in
`aioproducer/broker/configs/broker_config.py`; do not edit.

Configs marked **dynamic** can be changed while the broker runs, for one node or for all: by
`cluster.alter_broker_configs({"max.connections": 100}, node_id=0)`, or by clients with IncrementalAlterConfigs (Kafka's
`kafka-configs`). As in Kafka, one step can at most halve or double the numbers of threads.
Configs marked **of one node** cannot be set for all nodes at once.

| config | type | default | allowed | what it does |
|---|---|---|---|---|
"""

LISTENERS = """
## Listeners

A node may have several listeners. `listeners` names them and says where they listen; `listener.security.protocol.map`
has the protocol of each name: PLAINTEXT, SSL, or SASL_PLAINTEXT and SASL_SSL for clients that authenticate
([security.md](security.md)).
All nodes share these configs: a port is that of node 0, node n adds n to it, and 0 is a free port for each.

```
listeners=PLAINTEXT://:9092,INTERNAL://:9192
advertised.listeners=PLAINTEXT://kafka.example:9092,INTERNAL://:0
listener.security.protocol.map=PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT
listener.name.internal.max.connections=10
```

Clients get the addresses of the listener they connected to; `cluster.bootstrap_servers_of("INTERNAL")` returns those
of any listener.

`listeners`, `advertised.listeners` and `listener.security.protocol.map` can be changed while a node runs, for each
node separately:

```python
protocols = "PLAINTEXT:PLAINTEXT,NEW:PLAINTEXT"
changed = {"listeners": "PLAINTEXT://:9092,NEW://:9292", "listener.security.protocol.map": protocols}
cluster.alter_broker_configs(changed, node_id=0)
await cluster.listeners_changed()  # it listens there now
```

Here, too, ports are those of node 0. When a listener is removed, its port closes at once; its clients get their
answers, within a second, and lose their connections. The inter-broker listener cannot be removed, and a listener that
stays cannot change its port or protocol. (Kafka with KRaft does not allow changes of advertised listeners.)

A listener may have these configs of its own, as `listener.name.<its name>.<config>`; those that are not dynamic can be
set together with a new listener:

"""

TOPICS = """
## Topics

Set them by `cluster.create_topic("t", configs={"max.message.bytes": 1000})`, CreateTopics,
`cluster.alter_topic_configs` and IncrementalAlterConfigs. Where a topic has no config of its own, the broker's applies.

| config | the broker's |
|---|---|
"""

STORED = """
Kafka's other topic configs are accepted, checked, stored and described, but have no effect:

"""


def _dynamic(mode: UpdateMode) -> str:
    """The mode in words."""
    if mode is UpdateMode.READ_ONLY:
        return ""
    return " **Dynamic.**" if mode is UpdateMode.CLUSTER_WIDE else " **Dynamic, of one node.**"


def _of_listener(base: str) -> UpdateMode:
    """How the config may change while the listener is open."""
    return update_mode(f"listener.name.x.{base}") if base in LISTENER_LIMITS + LISTENER_STORES else UpdateMode.READ_ONLY


def _row(key: ConfigKey) -> str:
    dynamic = _dynamic(update_mode(key.name))
    empty = key.default is None or key.default in ("", ())
    default = "empty" if empty else f"`{as_text(key.default)}`"
    return f"| `{key.name}` | {key.type.value} | {default} | {key.valid.text} | {key.doc}{dynamic} |"


def page(keys: Iterable[ConfigKey]) -> str:
    """The whole page."""
    rows = "\n".join(map(_row, keys))
    topics = "\n".join(
        f"| `{name}` | `{SERVER_NAMES[name]}` |" for name in TOPIC_CONFIGS if name not in TOPIC_CONFIGS_WITHOUT_EFFECT
    )
    stored = "\n".join(f"- `{name}`" for name in sorted(TOPIC_CONFIGS_WITHOUT_EFFECT))
    own = "\n".join(f"- `{name}`{_dynamic(_of_listener(name))}" for name in LISTENER_CONFIGS)
    return f"{HEAD}{rows}\n{LISTENERS}{own}\n{TOPICS}{topics}\n{STORED}{stored}\n"


if __name__ == "__main__":
    TARGET.write_text(page(BROKER_CONFIGS.values()))
