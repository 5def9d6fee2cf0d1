"""The harness runs a plan: it drives the clients, records their operations and has them judged."""
