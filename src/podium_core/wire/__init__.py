"""Domain types to protobuf messages and back; the only shared place that sees both."""
