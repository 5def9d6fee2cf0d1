"""A search simulates many runs, each with its own seed and plan, and judges each as it ends."""
