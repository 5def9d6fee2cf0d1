"""A broker's moving parts: tasks, connections and files around the pure rules."""
