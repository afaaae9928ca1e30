"""Graph learning: graphs, masks of attention, messages and layers with gradients.

No other part of the package imports this one: :mod:`wollemi._operand_handlers` registers its graphs
as operands of products.
"""
