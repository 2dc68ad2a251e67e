lock:
	@:
