"""Conversions from and to other libraries; each module needs only its own library."""
