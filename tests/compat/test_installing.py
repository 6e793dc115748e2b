from __future__ import annotations

import subprocess
import sys

import pytest

pytest.importorskip("aiokafka", reason="aiokafka is not installed")


def run(program: str) -> str:
    """What a process of its own prints."""
    done = subprocess.run([sys.executable, "-W", "error", "-c", program], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_earlier_importers_are_named_and_later_ones_get_our_class() -> None:
    program = """
from aiokafka import AIOKafkaProducer
import aiokafka.producer.producer
from aioproducer.compat.aiokafka import AIOKafkaProducer as ours, install
from aioproducer.errors import IllegalStateException
try:
    install()
except IllegalStateException as error:
    print(error)
print(aiokafka.AIOKafkaProducer is AIOKafkaProducer)
del AIOKafkaProducer
install()
install()
from aiokafka.producer import AIOKafkaProducer
print(AIOKafkaProducer is aiokafka.AIOKafkaProducer is aiokafka.producer.producer.AIOKafkaProducer is ours)
print(aiokafka.AIOKafkaConsumer.__module__)
"""
    said, *found = run(program).splitlines()
    assert said.startswith("__main__ had imported aiokafka's producer before install(): ")
    assert found == ["True", "True", "aiokafka.consumer.consumer"]


def test_derived_classes_are_named_and_so_are_methods_that_were_replaced() -> None:
    program = """
import gc, warnings
import aiokafka
from aioproducer.compat.aiokafka import install
from aioproducer.errors import IllegalStateException
class Mine(aiokafka.AIOKafkaProducer): pass
try:
    install()
except IllegalStateException as error:
    print(error)
del Mine
gc.collect()
aiokafka.AIOKafkaProducer.flush = print
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    install()
print(*(f"{warning.filename} {warning.message}" for warning in caught))
"""
    derived, replaced = run(program).splitlines()
    assert derived.startswith("__main__.Mine had imported aiokafka's producer before install(): ")
    assert replaced.startswith("<string> aiokafka's AIOKafkaProducer.flush was replaced before install()")


def test_without_aiokafka_the_producer_is_there_all_the_same() -> None:
    program = """
import sys
sys.modules["aiokafka"] = None
from aioproducer.compat.aiokafka import AIOKafkaProducer, RecordMetadata, errors, install
print(errors.KafkaTimeoutError.__module__, RecordMetadata.__module__)
try:
    install()
except ImportError:
    print("not installed")
"""
    own = "aioproducer.compat.aiokafka"
    assert run(program).splitlines() == [f"{own}.errors {own}.structs", "not installed"]
