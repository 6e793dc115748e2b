"""aioproducer in the place of aiokafka: the program written for aiokafka, as it is."""

from __future__ import annotations

from aioproducer.compat.aiokafka import AIOKafkaProducer
from benchmarks.clients.aiokafka import Aiokafka
from benchmarks.harness.environment import aioproducer_build


class Compat(Aiokafka):
    producer_class = AIOKafkaProducer

    @classmethod
    def about(cls) -> str:
        return aioproducer_build()
