"""Pushes a client's metrics to the brokers, as far as they subscribe to them (KIP-714, ``enable.metrics.push``).

A client asks a broker for the subscription that the operators of the cluster have made for it. If it names metrics, the
client pushes them in each interval, and a last time when it closes. Otherwise it asks again, once in each interval.

    telemetry_state.py    the states of a client, and the changes from one to another
    subscription.py       what the cluster wants
    client_telemetry.py   the rules: what to request, and when; pure functions of state and ``now``
    metric_points.py      the metrics as points in time, total or since the last push
    metric_key.py         the names of metrics and labels
    otlp_payload.py       the points as OpenTelemetry's protocol has them, through ``opentelemetry-proto``
    push_task.py          the asyncio shell: sends the requests
"""
