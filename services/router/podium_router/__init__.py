"""The router: reaches the workers; the only holder of provider keys."""
