"""All attacks of one client on a broker, by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.attacks import batch_attacks, connection_attacks, fetch_attacks, group_attacks, topic_attacks
from benchmarks.attacks.honest_client import HONEST
from benchmarks.attacks.hostile_client import HostileClient
from benchmarks.attacks.steps import Attacking


@dataclass(frozen=True)
class Attack:
    """``run`` is a generator that prepares, yields, and attacks.

    ``arguments`` are those of ``aioproducer broker``, in which ``{data}`` stands for an empty directory;
    ``descriptors`` is how many the broker may have, 0 for as many as the system allows.
    """

    what: str
    run: Callable[[HostileClient], Attacking]
    arguments: Sequence[str] = ()
    descriptors: int = 0

    @property
    def name(self) -> str:
        return self.run.__name__.replace("_", "-")


_IN_A_DIRECTORY = ("--data-dir", "{data}", "-X", "log.flush.policy=never")
_LITTLE_MEMORY = ("-X", "queued.max.request.bytes=104857600")

ATTACKS = {
    attack.name: attack
    for attack in (
        Attack("a waiting fetch names a partition 1,000 times", fetch_attacks.waiting_fetch_duplicates),
        Attack("fetches that name a partition 19,990 times", fetch_attacks.fetch_duplicates),
        Attack("fetches that name a partition 100,000 times", fetch_attacks.too_many_duplicates),
        Attack("3 fetches wait for 3,000 partitions", fetch_attacks.wide_fetches, ("--topic", f"{HONEST}:3000")),
        Attack("5 fetch sessions of 5,000 partitions", fetch_attacks.wide_sessions),
        Attack("5 fetches at a time wait for 19,980 partitions", fetch_attacks.widest_waits),
        Attack("1,500 connections ask for fetch sessions again and again", fetch_attacks.session_churn),
        Attack("200 zstd batches of 127 MiB in a request", batch_attacks.zstd_bombs),
        Attack("60 gzip batches of 127 MiB in a request", batch_attacks.gzip_bombs),
        Attack("60 lz4 batches of 127 MiB in a request", batch_attacks.lz4_bombs),
        Attack("95 batches of 1 MiB with garbage inside in a request", batch_attacks.huge_requests),
        Attack("batches of empty gzip members", batch_attacks.gzip_members),
        Attack("batches of empty lz4 frames", batch_attacks.lz4_frames),
        Attack(
            "batches of 1,000,000 empty records", batch_attacks.tiny_records, ("-X", "log.retention.bytes=10000000")
        ),
        Attack("batches with garbage inside", batch_attacks.garbage_in_a_batch),
        Attack("ListOffsets of the largest timestamp, batch of 400,000 records", batch_attacks.largest_timestamp),
        Attack("topics of 300,000 and 2³¹−1 partitions", topic_attacks.partitions_beyond_all_limits),
        Attack("topics of 10,000 partitions", topic_attacks.many_partitions),
        Attack("Metadata that creates 10,000 topics", topic_attacks.metadata_creates_topics),
        Attack("Metadata that creates 5,000 topics with `_`", topic_attacks.metadata_creates_colliding_names),
        Attack("Metadata of 20,000 topics", topic_attacks.metadata_of_all_topics),
        Attack("DescribeConfigs of 2,000 topics among 20,000", topic_attacks.configs_of_many_topics),
        Attack("a config of all brokers changes, 20,000 topics", topic_attacks.changing_configs),
        Attack("20,000 groups, and lists of them", group_attacks.many_groups),
        Attack("8 clients commit 19,980 offsets at a time", group_attacks.wide_commits),
        Attack("8 clients remove 19,990 members that a group does not have", group_attacks.unknown_members_leave),
        Attack("quotas of 6,600 addresses, again and again", topic_attacks.changing_quotas),
        Attack("900 members join a group, with 100 protocols each", group_attacks.many_protocols),
        Attack("700 clients with 1 MB of metadata ask for a member id", group_attacks.large_subscriptions),
        Attack("2,500 transactional ids and groups of 32 KB", group_attacks.long_names, _IN_A_DIRECTORY),
        Attack("2,000 clients join a group and leave at once", group_attacks.ghost_joins),
        Attack("900 clients join a group, and all leave", group_attacks.large_group),
        Attack(
            "60 clients send 2 MB of a request of 90 MB",
            connection_attacks.parts_of_requests,
            _LITTLE_MEMORY,
        ),
        Attack(
            "400 connections to a broker of 256 descriptors",
            connection_attacks.no_descriptors,
            ("--data-dir", "{data}"),
            256,
        ),
        Attack("3,000 connections send garbage; nobody reads the log", connection_attacks.junk_that_is_logged),
        Attack("30 clients fetch 53 MiB and never read", fetch_attacks.never_reading_clients, _IN_A_DIRECTORY),
        Attack("20 connections pipeline requests", connection_attacks.pipelined_requests),
        Attack("connections at full speed", connection_attacks.connection_storm),
        Attack("transactions in 100,000 partitions", group_attacks.wide_transactions),
        Attack("transactions in 100,000 partitions, on disk", group_attacks.wide_transactions_on_disk, _IN_A_DIRECTORY),
        Attack("transactions with 99,900 offsets", group_attacks.wide_offsets_of_transactions),
        Attack("8 clients produce to 9,990 partitions at a time", batch_attacks.wide_produces),
        Attack("8 clients fetch 99,900 committed offsets at a time", group_attacks.all_committed_offsets),
        Attack("8 clients delete the records of 9,990 partitions at a time", topic_attacks.wide_record_deletions),
        Attack("topics of 10,000 partitions come and go", topic_attacks.wide_topic_deletions, _IN_A_DIRECTORY),
        Attack("1,000 clients ask for 20,000 topics and never read", topic_attacks.unread_metadata),
        Attack("100 clients ask for 2,000 topics' configs and never read", topic_attacks.unread_configs),
        Attack("60 clients fetch as much as they can", fetch_attacks.greedy_fetches, _IN_A_DIRECTORY),
        Attack("3,000 connections close at once", connection_attacks.simultaneous_closes),
        Attack("batches of a topic that are compressed again", batch_attacks.compressed_again),
    )
}
