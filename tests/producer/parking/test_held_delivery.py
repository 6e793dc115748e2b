from __future__ import annotations

from aioproducer.producer.delivery.delivery import Delivery
from aioproducer.producer.parking.held_delivery import HeldDelivery
from tests.producer.simulations.standing_loop import CountingLot, Loop, new_result, park, succeed, waiting


def held() -> tuple[HeldDelivery, CountingLot]:
    result, lot = new_result(Loop()), CountingLot()
    park(result, lot)
    return HeldDelivery(result, 0), lot


def test_a_held_delivery_is_a_delivery() -> None:
    delivery, _ = held()
    succeed(delivery.place()[0])
    assert isinstance(delivery, Delivery)
    assert delivery.result().offset == 1000
    assert repr(delivery) == "<Delivery t-0 delivered>"


def test_the_lot_learns_when_the_last_holder_drops_a_delivery() -> None:
    delivery, lot = held()
    again = delivery
    del delivery
    assert lot.drops == 0
    del again
    assert lot.drops == 1


def test_the_lot_does_not_care_for_a_delivery_whose_record_waits_no_longer() -> None:
    delivery, lot = held()
    task = waiting(delivery)
    delivery.place()[0].parked = False
    del delivery, task
    other, _ = held()
    result = other.place()[0]
    result.parked = False
    result.forward([(0, new_result(Loop(), "t", 1), 5)])
    assert not other.done()  # it points to where the record is now
    del other
    assert lot.drops == 0
