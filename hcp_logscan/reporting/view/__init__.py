"""What the HTML templates loop over: every word, number and order of the page, by subject."""
