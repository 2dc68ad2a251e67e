"""Plans from a language model that vLLM serves inside this process; the same code for GPU and CPU builds.

Only `serving` and `plugin` import vLLM; the first is imported when this engine is chosen, the second by vLLM.
"""
