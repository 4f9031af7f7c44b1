#!/usr/bin/env bash
# The main job in under two minutes: a small "remote" made of real files, a plan of three tiers,
# sync, status, restore, sha256sum -c. Everything lies in one temporary directory.
set -euo pipefail

here=$(mktemp -d "${TMPDIR:-/tmp}/cas-demo.XXXXXX")
trap 'chmod -R u+w "$here"; rm -rf "$here"' EXIT
remote=$here/remote
export XDG_CACHE_HOME=$here/cache

say() { printf '\n\033[1m%s\033[0m\n' "$*"; }
run() { printf '$ %s\n' "$*"; "$@"; }

say "A small remote host, from the Python library of this machine"
library=$(python3 -c 'import os; print(os.path.dirname(os.__file__))')
mkdir -p "$remote/context" "$remote/home/user" "$remote/export"
cp -r "$library/json" "$library/email" "$library/asyncio" "$remote/context/"
cp -r "$library"/*.py "$remote/home/user/"
cp "$library/argparse.py" "$remote/context/shared-with-home.py"
tar -C "$remote" -cf "$remote/export/home.tar" home
cp -r "$remote/home/user" "$remote/home/changed"
for file in "$remote"/home/changed/a*.py; do echo "# one line more" >>"$file"; done
truncate -s 64M "$remote/home/user/sparse.img"
ln "$remote/home/user/abc.py" "$remote/home/user/hardlink-to-abc.py"
(cd "$remote" && find . -type f -print0 | sort -z | xargs -0 sha256sum) >"$here/remote.sha256"
du -sh --apparent-size "$remote" | cut -f1

cat >"$here/plan.toml" <<PLAN
store = "store"

[source.remote]          # no host: this machine, through the same agent and protocol

[[tier]]
name = "00-context"
source = "remote"
paths = ["$remote/context"]
exclude = ["__pycache__/"]

[[tier]]
name = "01-export"
source = "remote"
paths = ["$remote/export"]

[[tier]]
name = "02-home"
source = "remote"
paths = ["$remote/home"]

[sets]
minimal = ["00-context", "01-export"]
PLAN

cd "$here"
say "What would it cost?"
run cas sync --dry-run
say "The minimal set first, then the rest: what an earlier tier brought is not fetched again"
run cas sync minimal
run cas sync
say "What is held"
run cas status
say "Restored and compared with what sha256sum said at the source"
for tier in 00-context 01-export 02-home; do run cas restore "$tier" --to restored; done
cd "restored${remote}"
grep -v __pycache__ "$here/remote.sha256" | sha256sum --quiet -c -
echo "sha256sum: all $(grep -vc __pycache__ "$here/remote.sha256") files are the same"
test "$(stat -c %b home/user/sparse.img)" -lt 100 && echo "the sparse file came back with its holes"
test "$(stat -c %i home/user/abc.py)" = "$(stat -c %i home/user/hardlink-to-abc.py)" &&
    echo "the hardlink came back as one"
