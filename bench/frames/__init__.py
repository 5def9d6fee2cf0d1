"""Mutated frames, fed into the connections of a broker without sockets, and what must hold then."""
