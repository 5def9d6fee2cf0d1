"""A search whose plans are changes of earlier plans that have reached rare states."""
