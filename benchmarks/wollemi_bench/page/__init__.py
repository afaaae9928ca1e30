"""Reports made of kept records: a page of HTML with its pictures, and the docs' performance page.

``numbers`` computes figures from the records, ``chapters`` chooses the ones for a reader, ``style``
and similar modules draw, ``html`` and ``markdown`` write.
"""
