"""Who coordinates what: pure rules over the two internal logs."""
