"""What Podium's services share: domain types, the runner, wire conversion and the gRPC runtime."""
