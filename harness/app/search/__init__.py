"""Search: many simulated runs over seeds, each with a plan of its own, judged as they end."""
