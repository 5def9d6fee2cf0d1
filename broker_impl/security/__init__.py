"""Security: TLS, authentication by SASL, and authorization by ACLs, as rules without sockets."""
