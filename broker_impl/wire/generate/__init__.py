"""Generates `broker_impl.wire.messages` from Kafka's message schemas.

    python -m broker_impl.wire.generate kafka-clients-3.5.2.jar

`schema` parses the JSON, `layout` finds the versions of a struct that have the same format,
`classes`, `readers` and `writers` turn both into source lines, and `module` assembles a file. A
broker does not use this package.
"""
