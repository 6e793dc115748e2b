"""Every public coroutine, cancelled wherever it waits."""
