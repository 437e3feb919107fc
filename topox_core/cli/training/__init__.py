"""Commands on training jobs: an iteration in closed form, strategies, generated inputs."""
