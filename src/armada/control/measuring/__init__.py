"""What is measured: the series of the metrics page, and the figures behind them as pure functions of what is known."""
