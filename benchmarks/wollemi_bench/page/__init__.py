"""Reports made of kept records: a page of HTML with its pictures, and the docs' performance page.

``numbers`` says what the records come to, ``chapters`` what of it a reader is told, ``ink`` and the
modules beside it draw, ``html`` and ``markdown`` write.
"""
