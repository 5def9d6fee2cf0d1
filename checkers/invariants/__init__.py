"""White-box checks: what must hold between any two events, whatever clients have seen.

Each invariant is a fold over snapshots of the cluster: it takes a step, keeps the state that it
needs, and yields violations. Its docstring says why it holds for every correct broker of Kafka's
2.8 line with ZooKeeper, since a false alarm would make all of them worthless. What holds only under
some settings depends on the ``Rules``. Names such as R4 number the rules of Kafka's protocol that
docs/anomalies.md lists.

Sampling is sound: snapshots may be any consistent cuts, with gaps between them. Fewer snapshots
only reduce what a fold can see.
"""
