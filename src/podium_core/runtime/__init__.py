"""What every service runs on: gRPC with mutual TLS and caller identity, settings, logs, telemetry."""
