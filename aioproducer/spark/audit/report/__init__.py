"""An audit's summary as one HTML file, ``report.html``, which needs no others and no network.

page.py    the sections
table.py   tables that sort and filter
plots.py   plots that show values at the pointer and zoom

In ``static/``, ``report.js`` makes the tables sort and filter, and draws the plots with uPlot, of which
``static/uplot/`` has the published files.
"""
