"""Tasks, and clean-up that is completed though its caller is cancelled.

turns.py, background_threads.py, own_thread.py   work beside the event loop, so much at a time
own_task.py          tasks that the package starts for itself
supervisor.py        reports those of a client that die
to_the_end.py        clean-up that goes on to its end
cancelled_scopes.py  clean-up in a cancelled scope of anyio
coroutine_functions.py   tells coroutine functions from plain ones
"""
