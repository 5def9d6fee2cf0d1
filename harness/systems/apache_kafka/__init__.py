"""The system ``apache-kafka:VERSION``: releases of Apache Kafka, run by Java."""
