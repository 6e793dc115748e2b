"""From a number in a response to its error."""

from __future__ import annotations

from aioproducer.errors import api, cluster, groups, records, security, topics, transactions
from aioproducer.errors.api import ApiException, UnnamedApiException
from aioproducer.errors.error_code import ErrorCode

_BY_CODE: dict[ErrorCode, type[ApiException]] = {
    cls.code: cls
    for family in (api, cluster, groups, records, security, topics, transactions)
    for cls in vars(family).values()
    if isinstance(cls, type) and issubclass(cls, ApiException) and "code" in vars(cls)
}


def error_for(code: int, message: str) -> ApiException:
    """The exception for a code in a broker's response (never call it with ``NONE``)."""
    known = ErrorCode(code)
    text = f"{message} (error {code}, {known.name})" if message else f"error {code}, {known.name}"
    return _BY_CODE.get(known, UnnamedApiException)(text)


def with_advice(words: str, code: int) -> str:
    """What went wrong, in the broker's words if it gave any, and what to do about it."""
    known = error_class(code)
    said = (words or (known.__doc__ or "").partition("\n")[0]).rstrip(".")
    return f"{said}; {known.advice}" if known.advice else said


def error_class(code: int) -> type[ApiException]:
    """The class that :func:`error_for` would make: for its flags, without making one."""
    return _BY_CODE.get(ErrorCode(code), UnnamedApiException)
