"""From what is there already (a shell script, a Makefile, a workflow) to a first job file."""
