"""Reports of runs, sweeps and translations, as tables and HTML pages."""
