"""Training: `train(config)` yields events; the learning rate of each step, and when a run has diverged."""
