"""Files of every format that parablock reads, changed at random: each is read, or refused in our own words."""
