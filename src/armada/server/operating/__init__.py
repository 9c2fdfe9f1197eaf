"""Services for operators: retry policies, executors, nodes."""
