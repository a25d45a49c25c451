"""The stand-ins: what an agent under test talks to instead of the real world.

The tool service executes calls and keeps the ledger of effects, which is the ground truth of every verdict. The model
gateway speaks the providers' wire formats and says what the model of the recording said. Both live in one process on
the far side of the fault; the harness opens runs in it and drains them over the control protocol.
"""
