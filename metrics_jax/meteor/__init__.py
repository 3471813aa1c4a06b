"""Three variants of METEOR (the papers', version 1.5, nltk's), with their aligners, stemmers and tables."""
