"""The system ``apache-zookeeper``: releases of Apache ZooKeeper, also with servers of ours."""
