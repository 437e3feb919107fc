"""What every part speaks of: task graphs, clusters, transfers, executions and what they amount to."""
