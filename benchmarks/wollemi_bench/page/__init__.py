"""Reports made of kept records: a page of HTML with its pictures, and the docs' performance page.

``numbers`` computes figures from the records, ``chapters`` chooses those that a reader is told,
``style`` and the modules beside it draw, ``html`` and ``markdown`` write.
"""
