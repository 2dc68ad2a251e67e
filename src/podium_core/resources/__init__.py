"""The pool, tenants and policies as objects of a Kubernetes cluster: read, watched, and told how they are."""
