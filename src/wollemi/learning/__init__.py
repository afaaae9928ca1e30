"""Graph learning: graphs, attention masks, messages, and layers with gradients.

No other part of the package imports this subpackage: :mod:`wollemi._operand_handlers` registers its
graphs as operands of products.
"""
