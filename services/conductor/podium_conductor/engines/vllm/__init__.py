"""Plans from a language model that vLLM serves inside this process; the same code for GPU and CPU builds.

Only `serving` imports vLLM, and nothing imports `serving` unless this engine is chosen.
"""
