"""The producer in other people's frameworks, over the public package alone. Each module needs the extra of its name.

fastapi.py, aiohttp.py   the producer's life within the service's, health routes, answers to what goes wrong
prometheus.py            its metrics, for Prometheus
opentelemetry/           its metrics and traces, for OpenTelemetry
answer.py                what a service answers when a record could not be sent
service_health.py        what it answers to who asks how it is
running.py               a producer from its start to its end
"""
