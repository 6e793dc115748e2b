"""The producer in other frameworks, using only the public package. Each module needs the extra of the same name.

fastapi.py, aiohttp.py   the producer in a service's lifespan, health routes, responses to errors
prometheus.py            its metrics, for Prometheus
opentelemetry/           its metrics and traces, for OpenTelemetry

For services of any framework (``docs/frameworks.md``), without an extra:

answer.py                what a service answers when a record could not be sent
service_health.py        what a service answers to health checks

Used by these:

running.py               a producer from the start of a service to its end
metric_names.py          names and units of metrics in other systems
"""
