"""Where plans are tried: recorded answers, simulated workers, the demo provider, live workers."""
