"""Request handlers: one module per family of requests, one table for dispatch and ApiVersions."""
