"""The command `ottla produce`: `sender` sends the lines of `lines` and shows a progress bar."""
