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
    "log-matching": "Below its high watermark, a replica's log differs from what was committed.",
    "leader-completeness": "A leader lacks committed records, or has others in their place.",
    "candidate-completeness": "A replica that may be elected lacks committed records.",
    "truncation-below-hw": "A replica truncated its log below what it knew to be committed.",
    "one-log-per-epoch": "Two different batches have the same offset and leader epoch.",
    "one-leader-per-epoch": "Two brokers led a partition in the same epoch.",
    "leader-as-elected": "A broker leads a partition although ZooKeeper names another leader.",
    "leader-hw-monotone": "A leader's high watermark went back within its epoch.",
    "hw-below-min-isr": "The high watermark advanced with too few replicas in sync.",
    "isr-superset": "A leader's maximal ISR has fewer replicas than the ISR in ZooKeeper.",
    "exposed-end-monotone": "A log's end that clients had seen went back later.",
    "offsets-in-order": "Log start, high watermark and log end are not in this order.",
    "log-in-order": "The offsets or leader epochs of a log do not increase.",
    "epoch-cache": "A leader epoch cache does not match its log, or does not increase.",
    "producer-state": "The producer state of a log does not match its batches.",
    "compaction-as-configured": "Segments were replaced in a log whose topic is not compacted.",
    "state-version": "A partition's state changed in ZooKeeper without a conditional write.",
    "leader-epoch-monotone": "A leader epoch went back, or has two leaders.",
    "isr-within-replicas": "An ISR is empty, lacks the leader, or has a broker without a replica.",
    "controller-epoch-monotone": "A controller epoch went back, or is not known to ZooKeeper.",
    "one-controller-per-epoch": "Two brokers were controller in the same epoch.",
    "metadata-epoch-monotone": "A broker returned a leader to clients that it knew to be replaced.",
}
"""What a violation of each invariant means; the names are those of findings."""
