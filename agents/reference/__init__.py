"""The reference agent: one run of a task with tools, surviving time-outs, lost replies, half answers and crashes.

Each mechanism is a module that knows no other's inside; `loop.py` puts them together, and `decisions.py` names the
few decisions that a variant may replace.
"""
