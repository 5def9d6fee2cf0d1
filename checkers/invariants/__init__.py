"""White-box checks: what must hold between any two events, whatever clients have seen.

Each invariant is a fold over snapshots of the cluster: it takes a step, keeps the state that it
needs, and yields violations. Its docstring says why it holds for every correct broker of Kafka's
2.8 line with ZooKeeper, since a false alarm would make all of them worthless. What holds only under
some settings depends on the ``Rules``. Names such as R4 number the rules of Kafka's protocol that
docs/anomalies.md lists.

Sampling is sound: snapshots may be any consistent cuts, with gaps between them. Fewer snapshots
only reduce what a fold can see.
"""

MEANING = {
    "log-matching": "Below its watermark a replica's log is not what was committed.",
    "leader-completeness": "A leader lacks, or has otherwise, what was committed before it.",
    "candidate-completeness": "A member of the ISR lacks what was committed: it may be elected.",
    "truncation-below-hw": "A replica cut its log below what it knew to be committed.",
    "one-log-per-epoch": "One offset of one leader epoch is two different batches.",
    "one-leader-per-epoch": "Two brokers led a partition in the same epoch.",
    "leader-as-elected": "A broker leads that ZooKeeper does not name.",
    "leader-hw-monotone": "A leader's high watermark went back within its epoch.",
    "hw-below-min-isr": "The high watermark moved with too few replicas in sync.",
    "isr-superset": "A leader counts fewer replicas than the ISR in ZooKeeper has.",
    "exposed-end-monotone": "Clients were told an end of the log that went back later.",
    "offsets-in-order": "Log start, high watermark and log end are out of order.",
    "log-in-order": "A log's offsets or leader epochs do not rise.",
    "epoch-cache": "A leader epoch cache does not agree with its log, or does not rise.",
    "producer-state": "What a log remembers of a producer is not what its batches tell.",
    "compaction-as-configured": "Segments were replaced of a log whose topic is not compacted.",
    "state-version": "A partition's state changed in ZooKeeper without a conditional write.",
    "leader-epoch-monotone": "Leader epochs went back, or two leaders stand under one.",
    "isr-within-replicas": "An ISR is empty, lacks the leader, or holds who is not assigned.",
    "controller-epoch-monotone": "Controller epochs went back, or one was never given out.",
    "one-controller-per-epoch": "Two brokers were the controller of the same epoch.",
    "metadata-epoch-monotone": "A broker told clients of a leader that it knew to be replaced.",
}
"""What a violation of each invariant means; the names are those of findings."""
