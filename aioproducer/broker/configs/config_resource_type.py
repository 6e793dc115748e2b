"""The kinds of resources that have configs, and the definitions of these configs."""

from __future__ import annotations

from enum import IntEnum

from aioproducer.broker.configs.broker_config import broker_config
from aioproducer.broker.configs.resource_configs import Owner, resource_config
from aioproducer.broker.configs.topic_config import TOPIC_CONFIGS
from aioproducer.configs.config_def import ConfigKey, Type


class ConfigResourceType(IntEnum):
    """The supported values of Kafka's ``ConfigResource.Type``."""

    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @property
    def owner(self) -> Owner | None:
        """Of configs that are only kept."""
        return Owner(self) if self in (ConfigResourceType.CLIENT_METRICS, ConfigResourceType.GROUP) else None

    def config(self, name: str) -> ConfigKey | None:
        """The definition of a config; None for a name that is unknown."""
        if self is ConfigResourceType.TOPIC:
            return TOPIC_CONFIGS.get(name)
        if self.owner is not None:
            return resource_config(self.owner, name)
        return broker_config(name) if self is ConfigResourceType.BROKER else None


def may_be_secret(resource_type: int, name: str) -> bool:
    """Whether the value of a config is a secret as far as anybody knows. An unknown name may be that of a password,
    misspelt. Kafka's ``KafkaConfig.loggableValue``."""
    if resource_type == ConfigResourceType.BROKER_LOGGER:
        return False  # levels of loggers
    try:
        config = ConfigResourceType(resource_type).config(name)
    except ValueError:
        return True
    return config is None or config.type is Type.PASSWORD
