from __future__ import annotations

import gc
import time

from benchmarks.fleet.cpu_meter import APPLICATION, COLLECTOR, LOOP, MODEL, PRODUCER, CpuMeter


def compute(seconds: float) -> None:
    until = time.thread_time() + seconds
    while time.thread_time() < until:
        pass


def test_time_belongs_to_whoever_has_it() -> None:
    meter = CpuMeter()
    with meter.of(PRODUCER):
        compute(0.02)
        with meter.of(MODEL):
            compute(0.05)
            assert 0.02 <= meter.producer() < 0.03
        compute(0.02)
        assert 0.04 <= meter.producer() < 0.06
    assert meter.switch(APPLICATION) == LOOP
    compute(0.03)
    assert meter.switch(LOOP) == APPLICATION
    assert 0.04 <= meter.seconds[PRODUCER] < 0.06
    assert 0.05 <= meter.seconds[MODEL] < 0.07
    assert 0.03 <= meter.seconds[APPLICATION] < 0.05


def test_the_garbage_collector_has_its_own_account() -> None:
    meter = CpuMeter()
    garbage = [[number] for number in range(300_000)]
    with meter.watching_collector(), meter.of(PRODUCER):
        gc.collect()
        gc.collect()
    del garbage
    assert meter.seconds[COLLECTOR] > meter.longest_collection > 0.0
    assert meter.seconds[PRODUCER] < meter.longest_collection
    before = meter.seconds[COLLECTOR]
    gc.collect()
    assert meter.seconds[COLLECTOR] == before
