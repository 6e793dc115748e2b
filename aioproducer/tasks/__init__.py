"""Tasks, and clean-up that is completed though its caller is cancelled.

own_task.py          tasks that the package starts for itself
to_the_end.py        clean-up that goes on to its end
cancelled_scopes.py  clean-up in a cancelled scope of anyio
"""
