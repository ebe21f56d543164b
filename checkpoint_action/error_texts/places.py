"""What goes wrong with places: the state, stores, the action's runner; and with us."""

from __future__ import annotations

from checkpoint_action.error_texts.page import Page
from checkpoint_action.errors import Kind

__all__ = ["PLACES"]

PLACES = {
    Kind.STATE_UNREADABLE: Page(
        "The state cannot be read",
        "A file of the job's state is there but cannot be read, or something else stands in its place.",
        "Give its owner the right to read it, remove what is in the way, or choose another `--state-dir`.",
        ".checkpoint-run-j.json is no file; remove it, or choose another --state-dir",
    ),
    Kind.STATE_NEWER: Page(
        "The state was written by a newer version",
        "A newer checkpoint-run has worked here. It is left as it is, since this one could not keep all it says.",
        "Upgrade, or use another `--state-dir`. `reset` forgets the state.",
        ".checkpoint-run-j.json was written by a newer checkpoint-run (format 99, this one knows 1); upgrade, or "
        "choose another --state-dir",
    ),
    Kind.STATE_OF_ANOTHER: Page(
        "The state of another job",
        "The file of this name holds the state of a job with another name: it was copied or renamed.",
        "Use the job's own name, or remove the file.",
        ".checkpoint-run-k.json holds the state of the job 'j'; use --job j, or remove the file",
    ),
    Kind.STATE_DAMAGED: Page(
        "The state is damaged",
        "A warning. A part of the state is not what was written: a disk fault, or a crash of the machine. What "
        "the other of the two files says is used, and what neither says runs again.",
        "Nothing, once. If it comes again, look at the disk. The damaged file is kept beside the new one.",
        ".checkpoint-run-j.json is damaged (not a whole JSON document); using the journal beside it",
        exit_code=None,
    ),
    Kind.STATE_NOT_WRITTEN: Page(
        "The state cannot be written",
        "The state folder cannot be made or written. The run stops, since steps that cannot be recorded would be "
        "lost; what was recorded before is intact.",
        "Make it writable for you, or choose another `--state-dir`. `checkpoint-run doctor` looks at it.",
        "cannot make the state dir file/deep: Not a directory",
        exit_code=5,
    ),
    Kind.DISK_FULL: Page(
        "The disk is full",
        "There is no room, or no quota, left to record a step. The run stops; what was recorded before is intact.",
        "Make room, then run again: what is done is skipped.",
        "cannot write the state in /full: No space left on device; choose another --state-dir",
        exit_code=5,
    ),
    Kind.HELD: Page(
        "The job is held by another run",
        "Only one run at a time works on a job's state. The lock ends with the process that holds it, however "
        "that ends, so it is never left over.",
        "Wait for it, or have this one wait: `--wait-lock`. For two independent runs use two jobs or two state "
        "folders.",
        "another run holds this job (process 4711); wait for it, use --wait-lock, or another --state-dir",
        exit_code=4,
    ),
    Kind.NO_LOCKS: Page(
        "The folder gives no locks",
        "The file system of the state folder (some network drives) has no working locks, so two runs could spoil "
        "each other's state.",
        "Choose a `--state-dir` on a local disk.",
        "the folder of /net/.checkpoint-run-j.lock gives no locks (No locks available); choose a --state-dir on a "
        "local disk",
        exit_code=5,
    ),
    Kind.NOT_SAVED: Page(
        "The progress was not saved",
        "`checkpoint-run save` was called in a step, and the run could not save what the step has so far. The "
        "step goes on; what was saved before is still there.",
        "Look at what the message names. A step may call `save` again at any time.",
        "not saved: the run does not answer",
        exit_code=5,
    ),
    Kind.STORE_FAILED: Page(
        "The store failed",
        "A store did not do what was asked, after retries. As a warning: the run goes on without it. It is an "
        "error only where that was asked for (`fail-on-store-error`).",
        "Mostly it passes. If not, check network, proxy and the service's status; `checkpoint-run doctor` tries "
        "it in CI.",
        "cache: save: HTTP 503; going on without the store",
        exit_code=1,
    ),
    Kind.STORE_DENIED: Page(
        "The store refuses",
        "The credentials may not read or write there, the quota is used up, or the service takes no more for now.",
        "Check the token's or key's permissions. For the Actions cache see the repository's cache page.",
        "file:///srv/store: put: /srv/store: Permission denied",
        exit_code=1,
    ),
    Kind.STORE_MISSING: Page(
        "The entry is gone from the store",
        "What a record points to has been evicted or deleted. The step runs again.",
        "Nothing. If it happens often, use a store that keeps entries longer.",
        "file:///srv/store: cpr1-run1-build-1 is not there any more",
        exit_code=1,
    ),
    Kind.STORE_TAKEN: Page(
        "The key is taken",
        "An entry of this name is there already. Another name is tried by itself.",
        "Nothing, unless it is the last line of a failure: then tell us.",
        "file:///srv/store: cpr1-run1-build-1 is there already",
        exit_code=1,
    ),
    Kind.ARCHIVE: Page(
        "An archive cannot be used",
        "An archive from a store is damaged, cut off, of another format, or not ours. Nothing of it is used, and "
        "the step runs.",
        "Nothing, once. If all archives are refused, see whether something rewrites them on their way (a proxy, a "
        "life-cycle rule).",
        "the archive is cut off",
        exit_code=1,
    ),
    Kind.STORE_URL: Page(
        "The store's URL cannot be used",
        "The URL is of no known kind, or has parts that mean nothing.",
        "Write `file:///folder`, `s3://bucket/prefix`, `gs://bucket/prefix` or `az://container/prefix`. "
        "Credentials come from the environment, never from the URL.",
        "store: ftp://host: there are no stores of kind 'ftp': write file:///folder, s3://, gs:// or "
        "az://bucket/prefix",
    ),
    Kind.STORE_LIBRARY: Page(
        "The library for this store is not installed",
        "Object stores need one more package than all else.",
        "`pip install 'checkpoint-run[cloud]'`.",
        "s3:// needs a library that is not here: pip install 'checkpoint-run[cloud]'",
    ),
    Kind.STORE_ACCESS: Page(
        "The environment does not give access to the store",
        "The variables that name region, endpoint or credentials are missing or contradict each other.",
        "Set them as for the service's own tools, for example `AWS_ACCESS_KEY_ID`, `AWS_SECRET_ACCESS_KEY` and "
        "`AWS_REGION`.",
        "s3://bucket: the environment does not give access: missing region",
    ),
    Kind.STORE_SLOW: Page(
        "The store takes too long",
        "A call did not end within its limit. The run goes on without the store.",
        "Look at the network. `max-size` and `exclude` make what is kept smaller.",
        "s3://bucket: get: out of time",
        exit_code=1,
    ),
    Kind.UNSIGNED: Page(
        "An archive is not signed with this key",
        "A signing key is set, and the archive has no valid signature of it: it is older than the key, or "
        "somebody else has put it there.",
        "After a change of the key nothing: the steps run once more. Else find out who may write to the store.",
        "it is not signed with this key",
        exit_code=1,
    ),
    Kind.NO_CHECKPOINT: Page(
        "There is nothing to take over",
        "The store or the run that was named holds no checkpoint of this job.",
        "Check the job's name, the scope and the place. A run pushes only steps that it has finished.",
        "file:///srv/store: there is no checkpoint of job release (scope run)",
    ),
    Kind.WOULD_OVERWRITE: Page(
        "Files of yours are in the way",
        "What is taken over would write over files that no step has left like that.",
        "Move them away, or give `--overwrite`.",
        "pull would write over files that no step has left like that: notes.txt; give --overwrite",
    ),
    Kind.CI_RUN: Page(
        "The run in CI cannot be used",
        "The run was not named, is not there, or the token may not see it.",
        "Give the number in its address (`…/actions/runs/ID`), and set `GITHUB_TOKEN` to a token that may read "
        "the repository's Actions.",
        "--github needs the run: --run ID, the number in its address (…/actions/runs/ID)",
    ),
    Kind.SCOPE: Page(
        "Nothing tells the scope",
        "A checkpoint is to serve one run or one commit, and neither a CI system nor git tells which that is.",
        "Name the run with `--run-id NAME`, the same on every machine; or use `--scope content`.",
        "--scope run: no CI system tells which run this is; name it with --run-id NAME",
    ),
    Kind.INPUT: Page(
        "An input of the action is wrong",
        "A value under `with:` is not one that the input takes.",
        "[The action](action.md) has all inputs with their values.",
        "input scope: unknown value 'rnu'; did you mean 'run'?; valid are run, commit, content",
    ),
    Kind.INPUT_STEPS: Page(
        "The action has no steps, or too many",
        "Give either the input `steps` or the input `file`, or have a `checkpoint.yml` in the working directory.",
        "Check out the repository before the action, if the file is in it.",
        "inputs steps and file exclude each other; put the steps into the file",
    ),
    Kind.INPUT_FOLDER: Page(
        "A folder that the action cannot use",
        "`working-directory` is not in the workspace or not there, or the runner's temporary folder cannot be written.",
        "Check out first, and name a folder below the workspace.",
        "input working-directory: there is no folder 'sub' in the workspace",
    ),
    Kind.NO_STORE: Page(
        "There is no store",
        "The runner offers neither the cache nor artifacts, or not what the input `store` asks for; or a verb "
        "about stores was not told of one.",
        "Name one with `--store URL`. In the action: use `store: auto`, or `store: none` where no re-run is to profit.",
        "push needs a store: --store URL",
    ),
    Kind.BUG: Page(
        "A bug in checkpoint-run",
        "Something happened that should not. Steps that were recorded as done stay done.",
        "Please report it with the file that the message names. Look through it first: it has no values of "
        "variables, but paths.",
        "this is a bug: ValueError: …; please report it with the file /tmp/checkpoint-run-bug-x.log",
        exit_code=70,
    ),
}
