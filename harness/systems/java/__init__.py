"""Java programs as systems: their jars, which Maven downloads, and the options of their JVM."""
