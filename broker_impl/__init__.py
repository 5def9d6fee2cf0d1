"""A replicated broker that speaks Kafka's protocol and is coordinated through ZooKeeper."""
