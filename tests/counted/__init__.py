"""Work that is counted and not timed, so that a change that makes more of it is seen on any machine."""
