"""Measure a model beside other libraries, each side in a process of its own: ``gptrs bench``."""
