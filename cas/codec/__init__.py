"""Codecs: compressed streams to plain bytes with side information, and back, bit for bit."""
