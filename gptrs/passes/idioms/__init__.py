"""How a part of a program is compared with a spelling of a composite.

`proposals` says where a spelling may be, `spelling` traces it there, `structure` compares.
"""
