# Sourced by the scripts beside it: finding a Python that will do, and keeping virtual environments.

export PIP_USER=0 # whatever the user's configuration says: in an environment there is no other place

# Whether $1 is a Python 3.11 or newer that can make virtual environments.
will_do() {
    "$1" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' </dev/null >/dev/null 2>&1
}

# The interpreters of pyenv that will do, oldest first.
pyenv_pythons() {
    local python
    for python in "${PYENV_ROOT:-$HOME/.pyenv}"/versions/*/bin/python3; do
        if will_do "$python"; then echo "$python"; fi
    done | sort -V
}

# Prints the Python to use: $PYTHON, else the first that will do on PATH or in pyenv.
choose_python() {
    local python
    if [ -n "${PYTHON:-}" ]; then
        if will_do "$PYTHON"; then echo "$PYTHON"; return; fi
        echo "PYTHON=$PYTHON is no Python 3.11 or newer that can make virtual environments" >&2
        return 1
    fi
    for python in python3 python python3.11 python3.12 python3.13 python3.14; do
        if will_do "$python"; then echo "$python"; return; fi
    done
    python=$(pyenv_pythons | sed -n 1p)
    if [ -n "$python" ]; then echo "$python"; return; fi
    echo "There is no Python 3.11 or newer (with venv) on PATH or in pyenv; PYTHON=/path/to/python names one" >&2
    return 1
}

# Makes the virtual environment $1, unless it is there, works, and is of $PYTHON if that is set.
make_venv() {
    local python made_with
    made_with=$(cat "$1/made-with" 2>/dev/null) || made_with=
    if [ -n "$made_with" ] && [ "${PYTHON:-$made_with}" = "$made_with" ] &&
        "$1/bin/python" -m pip --version </dev/null >/dev/null 2>&1; then
        return
    fi
    python=$(choose_python) || return
    rm -rf "$1"
    mkdir -p "$(dirname "$1")"
    "$python" -m venv "$1"
    echo "$python" >"$1/made-with"
}

# Has uv take packages from where the pip of the environment $1 takes them: uv reads none of pip's settings.
let_uv_follow_pip() {
    local settings pair name variable value
    settings=$("$1/bin/python" -m pip config list)
    for pair in index-url:UV_DEFAULT_INDEX extra-index-url:UV_INDEX find-links:UV_FIND_LINKS cert:SSL_CERT_FILE; do
        name=${pair%%:*} variable=${pair#*:}
        value=$(sed -n "s/^[^=]*\\.$name='\\(.*\\)'\$/\\1/p" <<<"$settings" | tail -n 1 | sed 's/\\n/ /g; s/^ *//; s/ *$//')
        if [ "$name" = find-links ]; then value=${value// /,}; fi # uv has commas there
        if [ -n "$value" ]; then export "$variable=${!variable:-$value}"; fi
    done
}

# A digest of files and folders, compiled Python left out, as the Python of the environment $1 sees them.
digest() {
    "$1/bin/python" - "${@:2}" <<'PYTHON'
import hashlib, pathlib, sys

digest = hashlib.sha256()
for path in map(pathlib.Path, sys.argv[1:]):
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file() and "__pycache__" not in file.parts:
            data = file.read_bytes()
            digest.update(f"{file} {len(data)}\n".encode() + data)
print(digest.hexdigest())
PYTHON
}

# `stamp VENV FILES...` notes what an environment was made from, `stamped VENV FILES...` asks whether that still holds.
stamp() { digest "$@" >"$1/stamp"; }
stamped() { [ -f "$1/stamp" ] && [ "$(digest "$@")" = "$(cat "$1/stamp")" ]; }
