"""The verbs of `armadactl`, one file a noun. Each registers its commands on import and knows no gRPC details."""
