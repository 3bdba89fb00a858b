"""How the built-in story model is made: the grammar of its text and its training."""
