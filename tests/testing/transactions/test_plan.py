from __future__ import annotations

import pytest

from aioproducer.testing.transactions.journal import Entry
from aioproducer.testing.transactions.plan import Plan, Step, Transaction, transaction_of


def test_a_seed_decides() -> None:
    assert Plan(seed=3).interruptions() == Plan(seed=3).interruptions()
    assert Plan(seed=3).interruptions() != Plan(seed=4).interruptions()


@pytest.mark.parametrize("seed", range(20))
def test_all_interruptions_can_happen(seed: int) -> None:
    plan = Plan(seed=seed, transactions=30, kills=20, stops=4)
    made = plan.interruptions()
    assert sum(one.stopped for one in made) == 4
    assert len(made) == 24
    assert [one.number for one in made] == sorted(one.number for one in made)
    for earlier, one in zip([None, *made], made, strict=False):
        if one.step is Step.INITIALIZE:
            assert not one.stopped
            assert earlier is not None  # it left a producer to be replaced
            assert not earlier.stopped


def test_a_third_is_aborted_and_records_go_to_all_partitions() -> None:
    plan = Plan(records=12, partitions=6)
    assert sum(plan.commits(number) for number in range(999)) == 666
    values = [*plan.values(Transaction(2, 5))]
    assert [partition for partition, _ in values] == [0, 1, 2, 3, 4, 5] * 2
    assert {transaction_of(value) for _, value in values} == {Transaction(2, 5)}
    assert len(dict.fromkeys(value for _, value in values)) == 12


def test_too_many_interruptions() -> None:
    with pytest.raises(ValueError, match="24 interruptions do not fit into 10 transactions"):
        Plan(transactions=10)


def test_a_line_of_the_journal_is_read_back() -> None:
    entry = Entry(Step.FAILED, Transaction(3, 17), 'it\'s "so"\nand so')
    assert Entry.of(entry.line()) == entry
    assert entry.line().count(b"\n") == 1
