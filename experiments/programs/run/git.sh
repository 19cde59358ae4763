#!/bin/sh
# git: a repository, three commits of five files, one collection.
set -eu
export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export GIT_CONFIG_NOSYSTEM=1 HOME=/nonexistent
git init -q -b main .
for commit in 1 2 3; do
	for file in 1 2 3 4 5; do echo "file $file in commit $commit" >"file$file"; done
	git add .
	git commit -q -m "commit $commit"
done
git gc -q
