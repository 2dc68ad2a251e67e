"""The `worker` engine: any worker of the pool, prompted as Conductor, through the router."""
