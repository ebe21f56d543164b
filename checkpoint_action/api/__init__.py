"""The Python interface: jobs written in Python, run by the engine of the command line.

>>> from checkpoint_action import Job, Step, run
>>> result = run(Job("release", [Step("build", "make -j4"), Step("test", "make test")]))  # doctest: +SKIP

All of it is to be had from :mod:`checkpoint_action` itself, which loads it when it is first asked for.
"""
