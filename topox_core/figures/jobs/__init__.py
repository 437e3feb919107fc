"""Jobs that share a fabric by time division: their rounds, their links, what sharing gains."""
