"""Random jobs, what is done to them between runs, and a second opinion on what each run has to do."""
