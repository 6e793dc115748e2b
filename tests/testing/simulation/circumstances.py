"""Circumstances under which bugs show: each changes a drawn scenario to one that a bug needs.

A rare bug needs several conditions at once. By chance they meet in one seed of thousands, and in another one after any
change of the simulation. So tests search for each bug in scenarios in which many seeds show it, and which can be drawn.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from aioproducer.testing.simulation.drawing import AMPLE, small_requests
from aioproducer.testing.simulation.network.conditions import Conditions
from aioproducer.testing.simulation.releases import NEWEST, OLD
from aioproducer.testing.simulation.scenario import SLOW_LINE, Ending, Promise, Scenario, TopicPlan

Circumstances = Callable[[Scenario], Scenario | None]
"""Changes a scenario; None if it cannot be changed like this."""


def batches_of(size: int, most: int | None = None) -> dict[str, int]:
    """Configs of batches that are sent with ``size`` bytes, and grow to ``most``; without it they do not grow."""
    return {"batch_size": size, "batch_initial_size": 0, "batch_max_size": size if most is None else most}


def any_scenario(scenario: Scenario) -> Scenario:
    """The scenario as it was drawn."""
    return scenario


def transactions(scenario: Scenario) -> Scenario | None:
    """The scenario as it was drawn, if it has transactions."""
    return scenario if scenario.applications else None


def in_one_life(scenario: Scenario) -> Scenario | None:
    """A single application works from the beginning to the end, with enough nodes for its coordinator."""
    if not scenario.applications:
        return None
    plan = scenario.applications[0]
    work = replace(plan.work, pause=0.1, cancels=0.0)
    return replace(
        scenario,
        nodes=3,
        racks=[None] * 3,
        applications=[replace(plan, begins_at=0.0, lives=1, span=0.0, transactions=8, work=work)],
        faults_until=1.0,
    )


def of_the_second_protocol(scenario: Scenario) -> Scenario | None:
    """One application with one life, and a new epoch for each transaction."""
    found = in_one_life(scenario)
    return None if found is None else replace(found, release=NEWEST, transaction_version=2)


def of_the_first_protocol(scenario: Scenario) -> Scenario | None:
    """One application with one life, and one epoch for all transactions."""
    found = in_one_life(scenario)
    return None if found is None else replace(found, transaction_version=1)


def impatient(scenario: Scenario) -> Scenario | None:
    """One application with one life, whose blocks are cancelled in the middle."""
    found = in_one_life(scenario)
    if found is None:
        return None
    (plan,) = found.applications
    return replace(found, applications=[replace(plan, by_hand=0.0, work=replace(plan.work, cancels=0.5))])


def withdrawing(scenario: Scenario) -> Scenario | None:
    """One application with one life and little memory; tasks that await records are often cancelled."""
    found = in_one_life(scenario)
    if found is None:
        return None
    (plan,) = found.applications
    work = replace(plan.work, waits=1.0, enqueues=False, cancels=0.5, records=20, burst=5, large=0.3)
    config = {**found.config, **batches_of(1000), "buffer_memory": 3500, "linger_ms": 20}
    config |= {"max_block_ms": 3000, "delivery_timeout_ms": 20_000}
    return replace(found, config=config, applications=[replace(plan, work=work, by_hand=1.0, aborts=0.0)])


def held_up(scenario: Scenario) -> Scenario | None:
    """There is little memory; every record is awaited, and other records have no room at all."""
    if scenario.applications:
        return None
    config = {**scenario.config, **batches_of(1000), "buffer_memory": 3500, "parked_memory": 0}
    work = [replace(plan, waits=1.0, enqueues=False, cancels=0.0, bulk=0.0) for plan in scenario.work]
    return replace(scenario, config=config, work=work)


def of_units(scenario: Scenario) -> Scenario | None:
    """One application with one life, whose handlers share transactions and are often cancelled."""
    found = in_one_life(scenario)
    if found is None:
        return None
    (plan,) = found.applications
    work = replace(plan.work, records=6, burst=20, pause=0.0, large=0.0, cancels=0.3)
    config = {**found.config, "max_block_ms": 3000, "transaction_group_window_ms": 5}
    return replace(
        found,
        config=config,
        applications=[replace(plan, units=1.0, aborts=0.1, offsets=0.2, transactions=20, work=work)],
    )


def of_interrupted_units(scenario: Scenario) -> Scenario | None:
    """Handlers share transactions of a producer that is closed in the middle of a commit, six times."""
    found = of_units(scenario)
    if found is None:
        return None
    (plan,) = found.applications
    work = replace(plan.work, cancels=0.0)
    return replace(found, applications=[replace(plan, lives=6, span=1.0, transactions=500, work=work)])


def of_poisoned_units(scenario: Scenario) -> Scenario | None:
    """Handlers share transactions, and some of their records are too large for their topic."""
    found = of_units(scenario)
    if found is None:
        return None
    (plan,) = found.applications
    config = {**found.config, **batches_of(1000), "compression_type": "none"}
    config |= {"max_request_size": 1 << 20, "buffer_memory": 1 << 20}
    config |= {"delivery_timeout_ms": 20_000, "retry_backoff_ms": 20}
    work = replace(plan.work, large=0.02, cancels=0.0)
    return replace(
        found,
        config=config,
        topics=[TopicPlan("topic0", 2, 0.0)],
        broker_configs={**found.broker_configs, "message.max.bytes": 500},
        applications=[replace(plan, work=work)],
    )


def of_impatient_units(scenario: Scenario) -> Scenario | None:
    """Handlers share transactions, some of their records are too large, and faults outlast the time of a unit."""
    found = of_poisoned_units(scenario)
    if found is None:
        return None
    return replace(found, config={**found.config, "delivery_timeout_ms": 700, "request_timeout_ms": 500})


def of_doomed_units(scenario: Scenario) -> Scenario | None:
    """Handlers share transactions, and some of their units ask for what is never accepted."""
    found = of_units(scenario)
    if found is None:
        return None
    (plan,) = found.applications
    return replace(
        found,
        config={**found.config, "max_request_size": 1 << 20, "buffer_memory": 1 << 20},
        topics=[TopicPlan("topic0", 2, 0.0)],
        broker_configs={**found.broker_configs, "auto.create.topics.enable": False},
        applications=[replace(plan, doomed=0.02, work=replace(plan.work, cancels=0.0))],
    )


def with_rivals(scenario: Scenario) -> Scenario | None:
    """Three applications have one transactional id."""
    found = in_one_life(scenario)
    if found is None:
        return None
    (plan,) = found.applications
    return replace(found, applications=[replace(plan, begins_at=at) for at in (0.0, 0.2, 0.4)])


def only(before: Circumstances, **rates: float) -> Circumstances:
    """Only these kinds of faults, at these rates; without arguments, no faults at all."""

    def changed(scenario: Scenario) -> Scenario | None:
        found = before(scenario)
        return None if found is None else replace(found, rates=rates, calm=False)

    return changed


def undisturbed(before: Circumstances) -> Circumstances:
    """There are no faults, and there is time for everything, so every failure is a violation."""
    patient = {
        "max_block_ms": 20_000,
        "request_timeout_ms": 5000,
        "delivery_timeout_ms": 60_000,
        "socket_connection_setup_timeout_ms": 5000,
        "socket_connection_setup_timeout_max_ms": 5000,
    }

    def changed(scenario: Scenario) -> Scenario | None:
        found = before(scenario)
        if found is None or "partitioner_class" in found.config or "sasl_mechanism" in found.config:
            return None
        return replace(
            found,
            rates={},
            calm=True,
            config=found.config | patient,
            broker_configs=found.broker_configs | {"connections.max.idle.ms": 600_000},
            conditions=Conditions(),
            applications=[replace(plan, timeout_ms=600_000) for plan in found.applications],
        )

    return changed


def patient(before: Circumstances) -> Circumstances:
    """Faults pass and there is ample time, so every failure is a violation."""

    def changed(scenario: Scenario) -> Scenario | None:
        found = before(scenario)
        if found is None or found.applications or found.promise is not Promise.EXACTLY_ONCE:
            return None
        config = {name: value for name, value in found.config.items() if name not in ("retries", "partitioner_class")}
        conditions = replace(found.conditions, bandwidth=1e8, window=256 * 1024)
        return replace(found, ample=True, config=config | AMPLE, conditions=conditions, ending=Ending.AFTER_ALL)

    return changed


def of_laborious_brokers(scenario: Scenario) -> Scenario | None:
    """Two requests at once would take longer than the time-out of a request, and one does not."""
    found = patient(crowded)(scenario)
    if found is None or "sasl_mechanism" in found.config:
        return None
    config = {"request_timeout_ms": 1000, "delivery_timeout_ms": 5000, "max_in_flight_requests_per_connection": 5}
    return replace(
        found,
        nodes=1,
        racks=[None],
        replication=1,
        broker_configs={
            **{name: value for name, value in found.broker_configs.items() if name != "log.cleanup.policy"},
            "connections.max.idle.ms": 600_000,
            "min.insync.replicas": 1,
            "message.max.bytes": 1048588,
        },
        config=found.config | batches_of(16384) | config,
        topics=[TopicPlan("topic0", 6, 0.0)],
        conditions=replace(found.conditions, latency=0.001),
        labour=0.7,
        producers=1,
        work=[replace(found.work[0], producer=0, records=120, burst=1, pause=0.05, large=0.0)],
        faults_until=0.1,
    )


def on_slow_lines(scenario: Scenario) -> Scenario | None:
    """Large records of one partition cannot cross the line in time; records of other partitions can."""
    found = patient(crowded)(scenario)
    if found is None:
        return None
    config = {**found.config, **batches_of(0), "request_timeout_ms": 150, "retry_backoff_max_ms": 50, "linger_ms": 5}
    config |= {"delivery_timeout_ms": 8000}
    return replace(
        found,
        nodes=1,
        racks=[None],
        replication=1,
        broker_configs={**found.broker_configs, "min.insync.replicas": 1, "message.max.bytes": 1048588},
        topics=[TopicPlan("topic0", 6, 0.0)],
        config=config,
        conditions=replace(found.conditions, latency=0.001, bandwidth=SLOW_LINE),
        producers=1,
        work=[replace(found.work[0], producer=0, records=30, burst=30, pause=0.0, large=0.1)],
        faults_until=0.1,
    )


def on_lines_too_slow_for_batches(scenario: Scenario) -> Scenario | None:
    """Batches of several records cannot cross the line in time; each of their records can."""
    found = on_slow_lines(scenario)
    if found is None:
        return None
    work = replace(found.work[0], burst=60, records=60, large=0.0)
    return replace(found, config={**found.config, **batches_of(5000)}, work=[work])


def of_topics_with_ids(before: Circumstances) -> Circumstances:
    """Producers can distinguish a topic that was created anew, which has as many partitions as before, from old
    metadata."""

    def changed(scenario: Scenario) -> Scenario | None:
        found = before(scenario)
        if found is None:
            return None
        configs = {**found.broker_configs, "auto.create.topics.enable": False}
        return replace(found, release=NEWEST, broker_configs=configs)

    return changed


def on_a_slow_machine(scenario: Scenario) -> Scenario | None:
    """Records for many topics are sent while the first metadata of these is applied, in many steps."""
    found = crowded(scenario)
    if found is None:
        return None
    return replace(
        found,
        slow=True,
        topics=[TopicPlan(f"topic{number}", 1, 0.0) for number in range(8)],
        work=[replace(plan, burst=1, pause=0.002, enqueues=False, cancels=0.0) for plan in found.work],
    )


def poisoned(scenario: Scenario) -> Scenario | None:
    """Crowded, and some records are too large for their topic."""
    found = crowded(scenario)
    if found is None:
        return None
    return replace(
        found,
        broker_configs={**found.broker_configs, "message.max.bytes": 500},
        work=[replace(plan, large=0.1) for plan in found.work],
    )


def compacted(scenario: Scenario) -> Scenario | None:
    """Many records in a batch, and records without a key are refused."""
    found = patient(of_many_records)(scenario)
    if found is None:
        return None
    return replace(found, release=NEWEST, broker_configs={**found.broker_configs, "log.cleanup.policy": "compact"})


def resting(scenario: Scenario) -> Scenario | None:
    """Crowded, and the producer repeatedly pauses for so long that it may be forgotten."""
    found = crowded(scenario)
    if found is None:
        return None
    found = replace(found, config={**found.config, "delivery_timeout_ms": 5000})
    return replace(
        found,
        producers=1,
        work=[replace(found.work[0], producer=0, burst=10, rests=6)],
        faults_until=found.faults_until + 9 * found.expiry,
    )


def of_old_records(scenario: Scenario) -> Scenario | None:
    """Crowded, and the producer may be forgotten between any two batches."""
    found = crowded(scenario)
    if found is None or found.log_append_time:
        return None
    return replace(found, work=[replace(plan, old=1.0) for plan in found.work])


def crowded(scenario: Scenario) -> Scenario | None:
    """Many batches are under way to one partition at a time, and their order matters."""
    if scenario.applications or scenario.promise is not Promise.EXACTLY_ONCE:
        return None
    config = {
        **scenario.config,
        **batches_of(0),
        "linger_ms": 0,
        "buffer_memory": 100_000,
        "max_in_flight_requests_per_connection": 20,
        "delivery_timeout_ms": 20_000,
    }
    config.pop("retries", None)
    return replace(
        scenario,
        config=config,
        topics=[TopicPlan("topic0", 1, 0.0)],
        work=[replace(plan, records=120, burst=40, pause=min(plan.pause, 1.0), waits=0.0) for plan in scenario.work],
        ending=Ending.AFTER_ALL,
        faults_until=3.0,
    )


def of_many_records(scenario: Scenario) -> Scenario | None:
    """Crowded, but each batch has many records."""
    found = crowded(scenario)
    return None if found is None else replace(found, config={**found.config, **batches_of(1000), "linger_ms": 5})


def growing(scenario: Scenario) -> Scenario | None:
    """Crowded, and batches are soon ready, and grow while they cannot leave."""
    found = crowded(scenario)
    if found is None:
        return None
    config = {**found.config, **batches_of(300, 5000), "max_request_size": 1 << 20, "compression_type": "none"}
    config["max_in_flight_requests_per_connection"] = 2
    return replace(found, config=config, conditions=replace(found.conditions, latency=0.02, bandwidth=1e6))


def growing_in_small_logs(scenario: Scenario) -> Scenario | None:
    """Batches grow, and their topic takes only smaller ones."""
    found = growing(scenario)
    if found is None:
        return None
    return replace(found, broker_configs={**found.broker_configs, "message.max.bytes": 1000})


def growing_beyond_requests(scenario: Scenario) -> Scenario | None:
    """Batches grow, and their broker closes the connection on larger ones, without an answer."""
    found = patient(growing)(scenario)
    if found is None or "sasl_mechanism" in found.config or found.labour > 0.0:
        return None
    config = {**found.config, **batches_of(300, 20_000), "delivery_timeout_ms": 30_000}
    configs = {**found.broker_configs, "message.max.bytes": 1048588, "socket.request.max.bytes": small_requests(300)}
    work = [replace(plan, burst=120, enqueues=False, cancels=0.0) for plan in found.work]
    return replace(found, config=config, broker_configs=configs, work=work, faults_until=1.0)


def without_topic_ids(scenario: Scenario) -> Scenario | None:
    """Topics have no ids, and are used from the beginning to the end."""
    if scenario.applications or scenario.promise is not Promise.EXACTLY_ONCE:
        return None
    return replace(scenario, release=OLD[0], ending=Ending.AFTER_ALL, faults_until=3.0)


def near_the_end_of_sequences(scenario: Scenario) -> Scenario | None:
    """After a few records, sequences start again from 0."""
    found = crowded(scenario)
    return None if found is None else replace(found, wraps=True)


def with_a_dead_address(scenario: Scenario) -> Scenario:
    """The name of the brokers also has an address without a listener."""
    return replace(scenario, conditions=replace(scenario.conditions, dead_address=True))
