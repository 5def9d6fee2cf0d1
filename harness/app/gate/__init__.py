"""A gate runs a suite of tests for CI and reduces it to one verdict and one exit status."""
