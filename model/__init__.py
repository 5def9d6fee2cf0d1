"""Values shared by harness, nemeses, workloads and checkers: operations, plans, findings, roles."""
