"""New jobs are looked at before rounds see them: can they ever run, and where? PURE."""
