"""Settings whose values no page, log, message or file may show."""

SECRET = ("password", "secret", "jaas.config", "private.key", "keystore.key", "key.pem")
"""Parts of the names of such settings, as Kafka, librdkafka and aiokafka call them."""

MASK = "***"


def is_secret(name: str) -> bool:
    """Return whether the value of a setting with this name must be masked."""
    return any(word in name.lower() for word in SECRET)


def masked(name: str, value: str) -> str:
    """Return the value of a setting, or a mask in its place."""
    return MASK if is_secret(name) else value
