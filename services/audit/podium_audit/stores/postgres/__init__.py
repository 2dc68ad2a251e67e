"""PostgreSQL behind the ports: what several replicas of audit share."""
