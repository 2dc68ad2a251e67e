"""The demo provider: a loopback process that speaks the OpenAI protocol with small exact specialists.

They are programs, not language models, and everything that shows them says *demo*. They let Podium run
without any provider key, and they are the upstream of its tests.
"""
