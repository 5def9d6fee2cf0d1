"""Historic bugs as replacements of single rules, each beside its story."""
