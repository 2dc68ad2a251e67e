"""What clients send and read, one dialect per module. Pure: bytes in, domain out, and back."""
