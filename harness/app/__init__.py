"""The command line, and the modules that implement its verbs."""
