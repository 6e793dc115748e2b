"""Writes docs/metrics.md from the metrics of a producer: ``python scripts/metrics.py``."""

from __future__ import annotations

from pathlib import Path

from aioproducer.metrics import every_distribution, every_metric

TARGET = Path(__file__).parent.parent / "docs" / "metrics.md"

HEAD = """\
# Metrics

`producer.metrics()` returns all metrics as they are at that moment: a `MetricsSnapshot`, an immutable mapping of
`MetricName(name, group, tags)` to float.

```python
found = producer.metrics()
found["record-send-rate"]  # a plain name means the group producer-metrics
found.topic("orders")["byte-rate"]  # one topic
found.node(1)["request-latency-avg"]  # one broker; bootstrap servers have ids from -1 down
found.select("producer-node-metrics")  # a group; also by tag: select(node_id="node-1")
print(found)  # a table of all
json.dumps(found.as_dict())  # by group and name; the groups of nodes and topics by node or topic first
```

The call computes every value at once, so it holds the event loop in proportion to the topics and partitions in use.
With thousands of topics call it every few seconds at most. `health()` reads no metrics of topics and partitions.

The metrics of the embedded broker are in [broker-metrics.md](broker-metrics.md).

`producer.health()` compares the metrics with thresholds and returns what is wrong, and what to do about it.
`metric.reporters` publish metrics elsewhere: they are objects with the methods of `aioproducer.MetricsReporter`. One is
`aioproducer.metrics_topic.MetricsTopicReporter`, which writes metrics to a topic ([schemas.md](schemas.md)). Your own
reporter has two methods:

```python
class Total:
    def init(self, producer):  # it has started
        self.producer = producer

    async def close(self):  # everything is delivered, or has failed
        print(self.producer.metrics()["record-delivered-total"])


KafkaProducer(bootstrap_servers="localhost:9092", metric_reporters=[Total()])
```

Names, groups and tags (`client-id`; `node-id`, as in `node-1`; `topic`) are those of Kafka's producer, so dashboards
and alarms for it can be reused. **Own** metrics are not in Kafka.

- Rates, averages and maxima cover the last `metrics.num.samples` windows of `metrics.sample.window.ms`, counted as
  Kafka counts them: all windows but the last are taken as complete. Totals count from when the producer was made.
- An average or maximum without values is NaN, as in Kafka; `as_dict()` has None there.
- Sensors record batches, requests and answers, never single records.
- The metrics of a topic appear with the first batch sent to it, and disappear when it has been unused for
  `metadata.max.idle.ms`. Those of a broker appear with the first connection to it, and disappear when it leaves the
  cluster. If either comes back, its totals start again from 0. (Kafka's stay for ever.)
- `metrics.recording.level`: all metrics are of level INFO, as in Kafka's producer, except those marked DEBUG.

Where a figure differs from Kafka's of the same name:

- Bytes are counted when a request is handed to the socket and when a whole response has arrived, not per system call;
  `network-io` counts the same two events.
- `bufferpool-wait-time-ns-total`, `bufferpool-wait-ratio` and `metadata-wait-time-ns-total` measure for how long *any*
  record waited. Kafka adds up the times of all waiting threads; here a thousand records can wait at once, and none of
  them is a thread. `waiting-threads` is the number of records that wait for memory.
- `record-error` also counts records that a forced close ends, and those of a bulk call that were never tried because of
  a close. As in Kafka it counts records that are refused: too large, not serializable, without metadata or memory in
  time; misuse is not counted.
- `metadata-wait` does not count waiting in `partitions_for()`.

## Metrics for the brokers

Operators of a cluster may subscribe to the metrics of its clients (KIP-714). Kafka offers that from 3.7 on if it has a
plugin that receives metrics. The producer asks a broker that it is connected to for its subscription, once in an
interval (5 minutes unless a subscription says otherwise), and pushes the metrics wanted. It pushes a last time when it
closes, which takes at most half a second. If nobody subscribes, it does nothing else, and makes no connection for the
question. `enable.metrics.push=false` turns this off.

    pip install 'aioproducer[telemetry]'

installs `opentelemetry-proto` ([Installing](../README.md#installing) says where pip finds `aioproducer`).
Without this library nothing is pushed; if a broker wants metrics then, this is logged once. The library is an extra
because it brings protobuf. With Kafka's tools a subscription to Kafka's metrics is

    kafka-client-metrics.sh --bootstrap-server localhost:9092 --alter --name producers \\
        --metrics org.apache.kafka.producer. --interval 60000 --match 'client_software_name=aioproducer'

or, from Python, `await admin.alter_configs(ConfigResource.client_metrics("producers"), {"metrics": …, …})`.

- Names are those that Kafka's producer pushes: `org.apache.kafka.producer.record.send.rate` for `record-send-rate` of
  `producer-metrics`. **Own** metrics and distributions begin with `aioproducer.` instead. A subscription to `*` is to
  both.
- Labels are the tags, as `node_id` and `topic`, without `client-id`, which brokers know from the request; all metrics
  of a producer have `transactional_id` and `client_rack`, if these are set. No other config is pushed.
- What is counted (`-total`) is a sum, since the last push or in all, as the broker wants; anything else is a gauge;
  distributions are histograms. Figures without a value are left out, where Kafka's producer pushes NaN.
- A push has at most `telemetry.max.bytes` (of the broker, 1 MiB), compressed or not. If there are more metrics, those
  of topics are left out first, which is logged.
- A push that a broker refuses is contained in the next one. One that is not answered counts as pushed.

`await producer.client_instance_id(timeout)` returns the id that the cluster has given the producer, by which its pushes
can be found. `EmbeddedCluster.telemetry()` has the pushes to an embedded broker ([testing.md](testing.md)).

Written by `python scripts/metrics.py`; do not edit.
"""

ABSENT = (
    (
        {
            ("producer-metrics", name)
            for name in (
                *("select-rate", "select-total", "io-ratio", "io-time-ns-avg", "io-time-ns-total"),
                *("io-wait-ratio", "io-wait-time-ns-avg", "io-wait-time-ns-total"),
            )
        },
        "the event loop does the I/O of the whole process, so the producer cannot know how long it waits for it",
    ),
    (
        {("producer-metrics", "successful-authentication-no-reauth-total")},
        "brokers count it, for clients before Kafka 2.2",
    ),
    ({("app-info", "version"), ("app-info", "commit-id")}, "they are text, not figures"),
)
"""Kafka's metrics that do not exist here, and why."""


DISTRIBUTIONS = """\
`producer.metrics().distributions` counts values by fixed bounds, from when the producer was made: the counts of
several producers, of one process or of many, add up. `PrometheusReporter` publishes each as a histogram. They are not
in Kafka, and not in the mapping. Each batch is counted once, never each record: a batch of a thousand records weighs
as much as a batch of one."""


def page() -> str:
    """The whole page."""
    lines = [HEAD]
    group = ""
    for name, metric in every_metric():
        if name.group != group:
            group = name.group
            tags = ", ".join(f"`{key}`" for key, _ in name.tags)
            lines += [*([""] if len(lines) > 1 else []), f"## {group}", "", f"Tags: {tags}.", ""]
            lines += ["| metric | what it is |", "|---|---|"]
        lines.append(f"| `{name.name}` | {'**Own.** ' if metric.own else ''}{_sentence(metric.doc)} |")
    lines += [
        "",
        "## Distributions",
        "",
        DISTRIBUTIONS,
        "",
        "| distribution | what it counts | bounds |",
        "|---|---|---|",
    ]
    for one in every_distribution():
        lines.append(
            f"| `{one.name.name}` | {_sentence(one.doc)} | {', '.join(f'{bound:.10g}' for bound in one.bounds)} |"
        )
    lines += ["", "## Kafka's metrics that do not exist here", "", "| metrics | why |", "|---|---|"]
    for names, why in ABSENT:
        listed = ", ".join(f"`{name}`" for _, name in sorted(names))
        lines.append(f"| {listed} | {_sentence(why)} |")
    return "\n".join(lines) + "\n"


def _sentence(text: str) -> str:
    return text if text.startswith("`") else text[:1].upper() + text[1:]


if __name__ == "__main__":
    TARGET.write_text(page())
