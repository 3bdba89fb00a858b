"""torch's modules as programs: `gptrs.torch`."""
