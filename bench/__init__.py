"""The benchmarks, their methods and the tables they print; results are compared within one run."""
