"""The group and transaction coordinators, as pure rules over the two internal topics' logs."""
