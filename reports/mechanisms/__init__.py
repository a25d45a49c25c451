"""Mechanism activation: could each reliability mechanism of an agent have acted, and did it (contract section 9).

One function per mechanism, by theme; `catalogue.py` lists them in the contract's order.
"""
