"""Historic bugs of Apache Kafka, shown on the releases that had them, and absent without them."""
