"""The values that the ``ssl.`` configs of clients and brokers may have."""

from __future__ import annotations

from typing import Final

from aioproducer.configs.config_def import Valid, list_of, one_of, one_of_in_any_case
from aioproducer.security.tls.suites import INSECURE, PROTOCOLS

STORE_TYPE: Final = one_of_in_any_case("jks", "pkcs12", "pem")
PROTOCOL: Final = one_of("TLSv1.3", "TLSv1.2", "TLS")
ENABLED_PROTOCOLS: Final = list_of(*PROTOCOLS, *INSECURE)
CONTEXT_FACTORY: Final = Valid("a callable that returns an ssl.SSLContext", callable)
