"""Who leads what: the rules by which the controller decides."""
