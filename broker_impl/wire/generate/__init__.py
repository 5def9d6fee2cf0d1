"""Writes `broker_impl.wire.messages` from Kafka's message schemas.

    python -m broker_impl.wire.generate kafka-clients-3.5.2.jar

`schema` reads the JSON into values, `layout` finds which versions of a struct are written alike,
`classes`, `readers` and `writers` turn both into source lines, and `module` puts a file together.
Nothing here runs in a broker.
"""
