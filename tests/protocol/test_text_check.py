"""Texts that no request can have are refused before anything is made of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aioproducer.errors import IllegalArgumentException, SchemaException
from aioproducer.protocol.codec import encode
from aioproducer.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic
from aioproducer.protocol.text_check import MAX_STRING_LENGTH, check_text, check_topic

HALF = "a\ud800"


@pytest.mark.parametrize(
    ("topic", "words"),
    [
        (None, "the topic is of type NoneType; it must be a str"),
        (b"t", "the topic is of type bytes"),
        ("", "the topic is empty"),
        (HALF, r"the topic is 'a\\ud800'; it cannot be encoded as UTF-8"),
        ("t" * (MAX_STRING_LENGTH + 1), "longer than the 32767 bytes"),
        ("é" * (MAX_STRING_LENGTH // 2 + 1), "longer than the 32767 bytes"),
    ],
)
def test_an_impossible_topic_name_is_refused(topic: Any, words: str) -> None:
    with pytest.raises(IllegalArgumentException, match=words) as refused:
        check_topic(topic)
    assert len(str(refused.value)) < 300


def test_a_topic_name_that_only_brokers_refuse_is_accepted() -> None:
    for topic in ("t", "not allowed!", "é", "t" * MAX_STRING_LENGTH, "\x00"):
        check_topic(topic)


@given(st.one_of(st.text(st.characters()), st.builds(str.__mul__, st.characters(), st.integers(10_000, 33_000))))
def test_exactly_those_are_refused_that_cannot_be_written(text: str) -> None:
    try:
        encode(MetadataRequest([MetadataRequestTopic(name=text)]), 12)
    except SchemaException:
        with pytest.raises(IllegalArgumentException):
            check_text("the text", text)
    else:
        check_text("the text", text)
