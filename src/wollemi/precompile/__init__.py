"""Compile kernels when a wheel is built: select the kernels, and write the archives.

This needs no GPU: programs are texts, and NVRTC compiles them on any machine.
"""
