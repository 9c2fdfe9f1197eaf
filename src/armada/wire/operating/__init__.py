"""Messages of the services for operators: retry policies, executors, nodes."""
