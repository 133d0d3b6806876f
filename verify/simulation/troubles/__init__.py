"""What can be done to a simulated cluster: one function per kind of decision."""
