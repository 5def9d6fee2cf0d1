"""The systems that can be tested: the programs of clusters, one folder for each."""
