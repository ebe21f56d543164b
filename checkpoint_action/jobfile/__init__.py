"""From what a person wrote (YAML or flags) to a resolved :class:`~checkpoint_action.model.Job`."""
