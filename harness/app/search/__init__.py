"""A search simulates many runs, each with a seed and a plan of its own, and judges each as it
ends."""
