"""Judges that try every order of small histories, with which the checkers are compared."""
