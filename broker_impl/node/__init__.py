"""The tasks, connections and files of a broker, around the pure rules of the other packages."""
