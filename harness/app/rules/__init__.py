"""Which branches of the broker's rules simulated runs reach."""
