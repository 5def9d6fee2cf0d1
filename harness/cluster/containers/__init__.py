"""The target ``containers``: every node in a container of its own, and the images for them."""
