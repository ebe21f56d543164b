"""What goes wrong with what people write: command lines, Python, job files, steps."""

from __future__ import annotations

from checkpoint_action.error_texts.page import Page
from checkpoint_action.errors import Kind

__all__ = ["COMMANDS"]

COMMANDS = {
    Kind.COMMAND_LINE: Page(
        "The command line cannot be used as it is",
        "An option lacks its value, has one that it cannot take, or is used where it means nothing.",
        "Do what the message says. `checkpoint-run VERB --help` has all options of a verb.",
        "--jobs: '0' is not a whole number from 1; see checkpoint-run --help",
    ),
    Kind.UNKNOWN_WORD: Page(
        "Unknown verb, option or word",
        "There is no verb or option of this name, or a word stands where none is expected. Nothing was run.",
        "Where a slip of the fingers is likely the message has the right name. Options may not be shortened, and "
        "a verb comes first.",
        "unknown option '--setp'; did you mean '--step'?; see checkpoint-run --help",
    ),
    Kind.EXCLUSIVE: Page(
        "Things that exclude each other",
        "Two options contradict each other, or one belongs to another verb.",
        "Leave one of them out; the message says which of them does what.",
        "--only and --from exclude each other; name all steps that are to run with --only",
    ),
    Kind.NO_SUCH_STEP: Page(
        "No such step",
        "An id was given that no step of the job has. Ids are case-sensitive.",
        "Use one of the ids that the message or `checkpoint-run status` shows, with spaces and not commas between "
        "several.",
        "--only 'zzz': no step has this id; the ids are a, b",
    ),
    Kind.NO_STEPS: Page(
        "No job to run",
        "Neither steps nor a job file were given, and there is no `checkpoint.yml` in the current folder; or the "
        "job has no name.",
        "Go to the folder of the job file, name it with `-f FILE`, or give `--job NAME --step ID:COMMAND`. "
        "`checkpoint-run init` writes a first job file.",
        "no steps; give --step ID:COMMAND or a job file (-f FILE, or checkpoint.yml or checkpoint.yaml here); "
        "'checkpoint-run init' writes a first one",
    ),
    Kind.NO_JOB_FILE: Page(
        "The job file cannot be read",
        "The file that was named is not there, is a folder, or may not be read.",
        "Check its name and the folder you are in. Paths start from the current folder, not from the job file's.",
        "there is no job file nothere.yml; check its name and folder",
    ),
    Kind.BAD_NAME: Page(
        "A name that cannot be one",
        "Names of jobs and steps become names of files on all systems, so only some characters are allowed.",
        "Use letters, digits, `.`, `_` and `-`, beginning with a letter or digit, at most 100 characters.",
        "--job '../up' is not valid; use letters, digits, '.', '_' and '-', beginning with a letter or digit, at "
        "most 100 characters",
    ),
    Kind.DUPLICATE_STEP: Page(
        "Two steps with one id",
        "Records are kept by id, so an id stands for one step. Upper and lower case count as one, as they do in "
        "the names of files on some systems.",
        "Rename one of the two.",
        "--step 'A' is there twice (as 'a'; upper and lower case count as one); rename one",
    ),
    Kind.BAD_VALUE: Page(
        "A value that cannot be used",
        "A duration, number, shell, path or address is not of the form that it must have.",
        "Durations are `90`, `90s`, `10m` or `1h30m`; addresses are `HOST:PORT`; shells are `bash`, `sh`, `pwsh`, "
        "`python` or a command with `{0}` in it.",
        "--step-timeout 'a': 'soon' is not a duration; write 90, 90s, 10m or 1h30m",
    ),
    Kind.FOLDER: Page(
        "The current folder cannot be used",
        "The folder to start in is not there, may not be entered, or has been removed under the running shell.",
        "Go to another folder, or give one that is there: `-C DIR`.",
        "-C none: No such file or directory",
    ),
    Kind.SAME_LOG: Page(
        "A log that is something else already",
        "Two steps would write their output to the same file, or one would write over the job's own state.",
        "Give each step a log of its own: `--step-log ID:PATH`, or `--logs-dir DIR` for all.",
        "steps 'a' and 'b' would write the same log {folder}/x.log; rename one",
    ),
    Kind.NO_LOG: Page(
        "No log to show",
        "The step has not run yet, ran with `--no-logs`, was accepted without running, or its log is gone.",
        "Run the step. To have logs elsewhere from the beginning use `--logs-dir DIR`.",
        "step 'b' has not run yet, so it has no log",
    ),
    Kind.NOT_IN_A_STEP: Page(
        "Only for a running step",
        "`checkpoint-run save` tells the run that started a step to save its progress. There is no such run here.",
        "Call it from the step's own command, in the foreground.",
        "save is for a running step: call it from the step's command",
    ),
    Kind.FILE_THERE: Page(
        "The file is there already",
        "`init` never writes over a file by itself.",
        "Give another name with `-f FILE`, or `--overwrite`.",
        "init: checkpoint.yml is there already; give --overwrite, or another name with -f FILE",
    ),
    Kind.NO_DRAFT: Page(
        "No job file can be made of this",
        "`init` found no commands in the file, or it is not a shell script, a Makefile or a GitHub workflow.",
        "Name another file or another job of the workflow, or begin with `checkpoint-run init` in an empty folder.",
        "init build.sh: there is no such file; check its name and folder",
    ),
    Kind.ANSWER_LOST: Page(
        "The answer could not be written",
        "What was asked for (a plan, a report, a job file) could not be written where it was to go. The run "
        "itself and its state are not touched by this.",
        "Make room on the disk or choose another place; then ask again.",
        "cannot write the report no/page.html: No such file or directory",
        exit_code=5,
    ),
    Kind.NOT_YAML: Page(
        "The job file is not YAML",
        "The text cannot be read as YAML, is empty, or is not UTF-8. The message names the line and column.",
        "Mostly it is indentation, a tab, or a `: ` inside of an unquoted text. Long commands go below `run: |`.",
        "checkpoint.yml:3:15: not valid YAML: a text holds ': '; put the whole text in quotes, or write 'run: |' "
        "and the text in the line below",
    ),
    Kind.JOB_FILE_VALUE: Page(
        "A wrong value in the job file",
        "The value under a key is of the wrong kind, or not one that the key takes.",
        "[The job file](job-file.md) has every key with what it takes; editors show it as you type with [the "
        "schema](cli.md#schema-the-job-file-in-an-editor).",
        "checkpoint.yml:2:27: step 'a': always must be true or false, not 'maybe'",
    ),
    Kind.UNKNOWN_KEY: Page(
        "An unknown key in the job file",
        "There is no such key at this place. Unknown keys are refused, since a mistyped `outputs` would go "
        "unnoticed until it is too late.",
        "Use the name that the message suggests, or one from [the job file](job-file.md).",
        "checkpoint.yml:2:11: step 'a': unknown key 'rum'; did you mean 'run'?",
    ),
    Kind.DUPLICATE_KEY: Page(
        "A key that is there twice",
        "YAML would silently keep one of the two.",
        "Remove one of them.",
        "checkpoint.yml:2:19: step 'a': key 'run' is there twice (first in line 2); remove one",
    ),
    Kind.MISSING_KEY: Page(
        "Something is missing in the job file",
        "A job needs `steps`, and each step an `id` and a `run`.",
        "Add what the message names.",
        "checkpoint.yml:2:3: step 'a' has no 'run'",
    ),
    Kind.UNKNOWN_NEED: Page(
        "A step needs one that is not there",
        "`needs` names an id that no step of the job has.",
        "Correct the id, or take it out. `needs: []` makes a step independent.",
        "checkpoint.yml:2:27: step 'a' needs 'z', which is no step; the ids are a",
    ),
    Kind.CIRCLE: Page(
        "Steps that need each other",
        "Following `needs` leads back to where it began, so none of these steps could ever start.",
        "Take one `needs` of the circle out.",
        "checkpoint.yml:2:27: steps need each other in a circle: a -> b -> a; take one 'needs' out",
    ),
    Kind.SECRET_COUNTS: Page(
        "A secret that is to count",
        "A variable is in `secrets` and in `pass-env`. What is recorded of a variable that counts would tell of "
        "its value.",
        "Take it out of `pass-env`. A step sees its secrets without that.",
        "checkpoint.yml:2:11: the job file: pass-env: 'A' is among the secrets, and a secret never counts; take "
        "it out here",
    ),
    Kind.VARIABLE_NAME: Page(
        "What cannot be the name of a variable",
        "A name of a variable is empty or has a blank, `=` or a wildcard in it.",
        "Name each variable by itself.",
        "checkpoint.yml:1:12: the job file: pass-env: 'CI_*' cannot be the name of a variable; write letters, "
        "digits and '_', no wildcards",
    ),
    Kind.NO_SHELL: Page(
        "The shell is not there",
        "The program that is to run a step is not on `PATH`. This is looked at before anything runs.",
        "Install it, or set another: `shell: sh` in the job file, `--shell` for `--step`. `checkpoint-run doctor` "
        "shows what there is.",
        "step 'a': the shell 'nosuchshell' is not on PATH; install it or set another shell",
    ),
    Kind.NO_GIT: Page(
        "Git cannot tell the files",
        "With the scope `content` a step without `inputs` takes all files that git tracks for its inputs, and git "
        "is not there, or this is no checkout.",
        "Check out with git before, list the `inputs` of every step, or use the scope `run`.",
        "git is not on PATH; list the inputs of every step instead",
    ),
    Kind.UNDECIDED: Page(
        "A step that must not run twice waits for you",
        "A run died in the middle of a step with `on-crash: stop`. Nobody but you can know whether it has done "
        "its work.",
        "Find out, then `checkpoint-run accept ID` (it has) or `checkpoint-run --force ID` (run it again).",
        "--force: the run died in 'publish', which may have done its work; 'checkpoint-run accept publish' takes "
        "it as done, '--force publish' runs it again",
    ),
    Kind.NOT_ACCEPTED: Page(
        "A step that cannot be accepted",
        "`accept` takes a step as done only where its outputs are there, what it needs is done, and it hands on "
        "nothing secret.",
        "Make what is missing, accept what it needs too, or let the step run.",
        "accept 'b': its declared output b.out is not there; make it, or let the step run",
    ),
    Kind.STEPS_LEFT: Page(
        "Not all steps are done",
        "In Python `Result.check()` raises this after a run in which a step failed, waits for a person, or did "
        "not start.",
        "Look at the step's log: `checkpoint-run logs ID`. Then run the job again: what is done is skipped.",
        "job release: step 'build' failed: it ended with exit code 2",
        exit_code=1,
    ),
    Kind.EXHAUSTED: Page(
        "Too little memory, or no more threads",
        "The machine, or a limit that is set on it (`ulimit -v`, that of a container, of processes for a user), has "
        "no more memory or threads for checkpoint-run itself. Steps that run are ended. What is recorded stays "
        "recorded; a step in whose midst it happened is not done.",
        "Make room, raise the limit, or run fewer steps at once (`--jobs`), then run again: what is done is skipped.",
        "there is too little memory, or a limit leaves too little of it; what is recorded stays recorded: make room "
        "or raise the limit, then run again, and the next run goes on",
        exit_code=5,
    ),
}
